"""The command line: one file for each command in `commands/`, and what they share.

main.py, entry.py, commands/    the table of commands; errors become sentences
panels.py, options.py           options, made from the settings of models
light_typer.py                  what typer need not load and check
model_help.py                   the help of train and tune: common options, those of one model, all
early.py, choosing.py           what is checked before torch is loaded; the model that the data choose
config_file.py                  the same settings in TOML files
inputs.py, tasks.py             what commands are given
training.py, train_data.py      the one way in which every model is trained
tune_*.py                       the search for settings
answering.py, predicting.py     answers about a stream of sentences, as text
writers/, bulk/                 answers as text; many files at once
compiling.py                    kernels are compiled at an announced moment
story.py, report/               the demo and its page
"""
