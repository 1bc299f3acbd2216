"""The contract of job plugins, tried on a plugin that somebody wrote.

`loading` finds the plugin, `examples` makes up Jobs and pods, `properties` says what must hold of them,
`watching` notices where a plugin looks beyond its arguments, `processes` asks it again in processes that
order sets otherwise, and `trials` puts it all to the test.
"""
