"""The simulation of a whole broker: clients act, misfortunes strike, histories remember, a witness looks."""
