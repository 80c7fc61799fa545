"""The command line: one file for each command in `commands/`, and what they share.

main.py, entry.py, commands/    the table of commands; errors become sentences
options.py                      options that commands share, and those made from the settings of models
light_typer.py                  parameters of typer that load and check less
model_help.py                   the help of train and tune: common options, those of one model, all
early.py, choosing.py           checks before torch is loaded; the model that the data choose
config_file.py                  the same settings in TOML files
inputs.py                       models and files that commands are given
training.py, train_data.py      the one way in which every model is trained, also as a trial of tune
tune_folder.py                  the space of a search for settings, and its folder
answering.py                    from a file to its answers
writers/, bulk/                 answers as text; many files at once
compiling.py                    kernels are compiled at an announced moment
story.py, report/               the demo and its page; the results of evaluate
"""
