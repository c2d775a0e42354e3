/** Who makes a request, after the access token was checked. */
export interface Requester {
  readonly userId: string;
  /** Absent for application services that act without a device. */
  readonly deviceId: string | undefined;
  readonly isGuest: boolean;
  readonly isAdmin: boolean;
  /** The account is suspended: its user may read, and little else. */
  readonly isSuspended?: boolean;
  /** Id of the application service whose token was used. */
  readonly appservice: string | undefined;
  /** Identifies the access token (not the token itself), for scoping transaction ids and refresh. */
  readonly tokenId: number | undefined;
}

/** Finds out who a token belongs to; declared here, supplied by the accounts slice at composition. */
export interface Authenticator {
  /**
   * @param token the access token as sent
   * @param assertedUserId the `user_id` query parameter that application services may send
   * @throws MatrixError M_UNKNOWN_TOKEN (with soft_logout), M_USER_LOCKED, M_USER_DEACTIVATED ...
   */
  authenticate(token: string, context: AuthenticationContext): Requester | Promise<Requester>;
}

export interface AuthenticationContext {
  readonly assertedUserId: string | undefined;
  readonly assertedDeviceId: string | undefined;
  readonly ip: string;
  readonly userAgent: string | undefined;
  /** The route is for users too whose account is locked. */
  readonly allowLocked?: boolean;
}

/** Checks the signature of a request of another server; supplied by the federation slice at composition. */
export interface ServerAuthenticator {
  /** @returns the name of the server; throws MatrixError 401 M_UNAUTHORIZED otherwise. */
  authenticateServer(request: SignedRequest): Promise<string>;
}

/** Decides how many requests of other servers are worked on; supplied at composition. */
export interface ServerAdmission {
  /**
   * Resolves when it is the turn of a request of that server.
   * @returns to be called when the request is over
   * @throws MatrixError M_LIMIT_EXCEEDED
   */
  admit(serverName: string, signal: AbortSignal): Promise<() => void>;
}

export interface SignedRequest {
  readonly method: string;
  /** The URI exactly as it was sent. */
  readonly url: string;
  readonly authorization: readonly string[];
  /** The parsed JSON body, `undefined` when there was none. */
  readonly body: unknown;
  /** The body as it was sent, where it is not all in `body`. */
  readonly bodyText?: string | undefined;
}
