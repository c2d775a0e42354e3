/** A login whose user has been authenticated. */
export interface AuthenticatedLogin {
  readonly userId: string;
  /** Login type. */
  readonly type: string;
  readonly deviceId: string | undefined;
  readonly deviceName: string | undefined;
  /** Address of the client. */
  readonly ip: string;
}

/** A registration by a client that has completed its stages. */
export interface CompletedRegistration {
  readonly userId: string;
  readonly isGuest: boolean;
  /** Address of the client. */
  readonly ip: string;
}

/** Forbids logins and registrations that the options allow; supplied by modules. Each may throw a MatrixError. */
export interface AccountChecks {
  /** Runs before a session is opened for an authenticated user. Absent: nothing is checked. */
  readonly login?: ((login: AuthenticatedLogin) => Promise<void>) | undefined;
  /** Runs before the account is created. Absent: nothing is checked. */
  readonly registration?: ((registration: CompletedRegistration) => Promise<void>) | undefined;
}
