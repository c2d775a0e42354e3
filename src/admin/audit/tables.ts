import type { Generated } from 'kysely';

/** The table of the audit log. */
export interface AuditTables {
  audit_log: {
    id: Generated<number>;
    /** Milliseconds since the epoch. */
    ts: number;
    /**
     * The user id of the administrator, or of another user who was refused; `<registration_shared_secret>` for a
     * registration with that secret.
     */
    administrator: string;
    method: string;
    /** The path of the route, with the names of its parameters: `/_server/admin/v1/deactivate/{userId}`. */
    path: string;
    /** The `operationId` of the route; for a route without one, its method and path. */
    operation: string;
    /**
     * The path parameters without secrets, and the `user_id` of the body, separated by spaces; null when there is
     * neither.
     */
    target: string | null;
    /** HTTP status of the response. */
    status: number;
    /** Address of the client. */
    ip: string;
    /** 1 for requests that may have changed something; 0 for requests with GET or with the status 403. */
    is_change: number;
    /** The number of equal requests that the entry stands for. More than 1 only if `is_change` is 0. */
    requests: number;
    /** Time of the last of these requests, in milliseconds since the epoch. */
    last_ts: number;
  };
}
