/** Maximum number of PDUs in a transaction. Source: server-server API, "Transactions". */
export const maxPdus = 50;

/** Maximum number of EDUs in a transaction. Source: server-server API, "Transactions". */
export const maxEdus = 100;
