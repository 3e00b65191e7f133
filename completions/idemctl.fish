complete --keep-order --exclusive --command idemctl --arguments "(COMPLETE=fish idemctl -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
