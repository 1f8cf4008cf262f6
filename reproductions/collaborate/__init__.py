"""Tables I, II and III of Sheikhalishahi and Martinelli (2017) on Primary Tumor, beside ours."""
