-- One spelling of the state: jobs of a cluster and all texts have two l. Rows, checks and histories follow the value.
alter type task_state rename value 'CANCELED' to 'CANCELLED';
