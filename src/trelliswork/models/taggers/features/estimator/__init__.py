"""The parts that make `trelliswork.sklearn.CRF` a drop-in for sklearn-crfsuite."""
