/** The user who makes a request, after the access token was checked. */
export interface Requester {
  readonly userId: string;
  /** Absent for application services that act without a device. */
  readonly deviceId: string | undefined;
  readonly isGuest: boolean;
  readonly isAdmin: boolean;
  /** Whether the account is suspended: its user may read, and little else. */
  readonly isSuspended?: boolean;
  /** Whether the user's events are accepted, but not sent to anyone. */
  readonly isShadowBanned?: boolean;
  /** Id of the application service whose token was used. */
  readonly appservice: string | undefined;
  /**
   * Whether rate limits do not apply: true for the own user of each application service, and for the other users of a
   * service that is registered with `rate_limited: false`.
   */
  readonly isUnlimited?: boolean;
  /** Id of the administrator who makes the request as the user; absent for the user's own requests. */
  readonly administrator?: string | undefined;
  /** Number that identifies the access token; `undefined` for requests that are not made with the token of a session. */
  readonly tokenId: number | undefined;
}

/** Authenticates access tokens; declared here, supplied by the accounts slice at composition. */
export interface Authenticator {
  /**
   * @param token the access token as sent
   * @param context who sends the request, and as whom an application service acts
   * @throws MatrixError M_UNKNOWN_TOKEN (with soft_logout), M_USER_LOCKED, M_USER_DEACTIVATED and others
   */
  authenticate(token: string, context: AuthenticationContext): Requester | Promise<Requester>;
}

export interface AuthenticationContext {
  /** The query parameter `user_id`: the user as whom an application service acts. */
  readonly assertedUserId: string | undefined;
  /** The query parameter `device_id`: the device as which an application service acts. */
  readonly assertedDeviceId: string | undefined;
  readonly ip: string;
  readonly userAgent: string | undefined;
  /** Whether users with a locked account may call the route. */
  readonly allowLocked?: boolean;
  /** Whether the route accepts access tokens that have expired. */
  readonly allowExpired?: boolean;
}

/** Checks signatures of requests from other servers; supplied by the federation slice at composition. */
export interface ServerAuthenticator {
  /**
   * Checks what can be checked before the body is read: the header, the destination, whether the server is allowed,
   * and whether the keys are known.
   * @throws MatrixError 401 M_UNAUTHORIZED, 403 M_FORBIDDEN
   */
  readSignature(head: SignedRequestHead): Promise<RequestSignature>;
}

/** The signature of a request whose body has not been verified. */
export interface RequestSignature {
  /** The name of the server that is claimed to have sent the request. */
  readonly origin: string;
  /**
   * Verifies the signature over the body.
   * @param content the body as canonical JSON; `undefined` without a body
   * @throws MatrixError 401 M_UNAUTHORIZED
   */
  verify(content: string | undefined): Promise<void>;
  /** Verifies the signature over a long body on another thread. @returns whether the signature covers these bytes */
  covers(content: Buffer): Promise<boolean>;
}

/** Limits how many requests of each remote server are processed at once; supplied at composition. */
export interface ServerAdmission {
  /**
   * Resolves when the request may be processed.
   * @returns a function to call when the request is over
   * @throws MatrixError M_LIMIT_EXCEEDED
   */
  admit(serverName: string, signal: AbortSignal): Promise<() => void>;
}

/** The parts of a request that a signature covers, besides the body. */
export interface SignedRequestHead {
  readonly method: string;
  /** The URI exactly as sent. */
  readonly url: string;
  /** Values of the `Authorization` headers. */
  readonly authorization: readonly string[];
}
