/** Another server has answered something in a handshake that can not be used. */
export class HandshakeFailure extends Error {
  override readonly name = 'HandshakeFailure';
  readonly server: string;

  constructor(server: string, what: string, options?: ErrorOptions) {
    super(`The answer of ${server} can not be used: ${what}`, options);
    this.server = server;
  }
}
