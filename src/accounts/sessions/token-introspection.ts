/** The answer of an authentication service about a valid access token. */
export interface IntrospectedToken {
  readonly userId: string;
  readonly deviceId: string | undefined;
  /** Whether the token has the rights of a server administrator. */
  readonly isAdmin: boolean;
  /** Milliseconds since the epoch until which the answer may be used. */
  readonly usableUntil: number;
}

/** Introspects access tokens at an authentication service, instead of looking them up in the database. */
export interface TokenIntrospection {
  /**
   * Asks the service about an access token.
   * @param ip address of the client
   * @returns `undefined` for a token that is not valid
   * @throws MatrixError 503 when the service does not answer; M_LIMIT_EXCEEDED for a client that has sent too many
   * tokens that are not valid
   */
  introspect(token: string, ip: string): Promise<IntrospectedToken | undefined>;
}
