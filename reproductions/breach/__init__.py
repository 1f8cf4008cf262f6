"""Tables and figures of Jafer et al. (2017), beside ours."""
