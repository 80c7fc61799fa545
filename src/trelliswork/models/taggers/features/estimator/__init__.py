"""What `trelliswork.sklearn.CRF` needs to be a drop-in for sklearn-crfsuite."""
