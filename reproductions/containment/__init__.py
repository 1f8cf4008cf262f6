"""Tables 4-6 and Figure 1 of Zhang et al. (2017), beside ours."""
