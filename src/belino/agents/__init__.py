"""Who answers: one module per kind of agent."""
