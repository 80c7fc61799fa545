"""What every kernel needs and no mathematics: how it is compiled and where its machine code is kept."""
