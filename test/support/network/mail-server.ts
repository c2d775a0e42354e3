import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import PostalMime, { type Email } from 'postal-mime';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

/** A mail as the mail server has received it. */
export interface ReceivedMail {
  /** Sender in the envelope. */
  readonly from: string;
  /** Recipients in the envelope. */
  readonly to: readonly string[];
  /** Whether the connection used TLS. */
  readonly isSecure: boolean;
  /** User name of the session. */
  readonly user: string | undefined;
  /** The parsed mail. */
  readonly content: Email;
  /** The mail as it was received. */
  readonly raw: string;
}

/** How the server answers after it has received the whole mail. */
export type AfterData = 'accept' | 'reject' | 'reject permanently' | 'close' | 'never answer';

export interface MailServerOptions extends Pick<SMTPServerOptions, 'secure' | 'key' | 'cert'> {
  /** Whether STARTTLS is offered. */
  readonly startTls?: boolean;
  /** The only login that is accepted; without it no login is offered. */
  readonly login?: { readonly user: string; readonly pass: string };
  readonly afterData?: AfterData;
}

/** A real SMTP server on a free port of the loopback address. */
export class MailServer {
  /** In the order of arrival. */
  readonly received: ReceivedMail[] = [];
  afterData: AfterData;
  /** Recipients that are rejected. */
  readonly unknownRecipients = new Set<string>();
  /** Milliseconds before each answer to a command about a mail. */
  replyDelay = 0;
  /** Number of mails that have arrived completely, whatever the answer to them was. */
  attempts = 0;
  readonly #server: SMTPServer;
  #waiting: (() => void)[] = [];

  private constructor(options: MailServerOptions) {
    const { startTls = false, login, afterData = 'accept', ...tls } = options;
    this.afterData = afterData;
    this.#server = new SMTPServer({
      ...tls,
      hideSTARTTLS: !startTls,
      authOptional: login === undefined,
      disabledCommands: [...(login ? [] : ['AUTH']), ...(startTls ? [] : ['STARTTLS'])],
      allowInsecureAuth: true,
      disableReverseLookup: true,
      closeTimeout: 100,
      onAuth: ({ username, password }, _session, done) => {
        const isRight = username === login?.user && password === login?.pass;
        done(isRight ? null : new Error('Wrong password'), { user: username });
      },
      onMailFrom: (_address, _session, done) => this.#reply(done),
      onRcptTo: ({ address }, _session, done) => {
        const refusal = Object.assign(new Error('No such mailbox'), { responseCode: 550 });
        this.#reply(() => done(this.unknownRecipients.has(address) ? refusal : undefined));
      },
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => void this.#received(Buffer.concat(chunks), session as never, done));
      },
    });
    // Some tests close a connection half-way. That is not an error of the mail server.
    this.#server.on('error', () => undefined);
  }

  static async start(options: MailServerOptions = {}, port = 0): Promise<MailServer> {
    const server = new MailServer(options);
    await new Promise<void>((resolve) => server.#server.listen(port, '127.0.0.1', resolve));
    return server;
  }

  get port(): number {
    return (this.#server.server.address() as AddressInfo).port;
  }

  /** Resolves with the mail at an index, from 0, as soon as it has been received. */
  async mail(index: number): Promise<ReceivedMail> {
    while (this.received.length <= index) await this.#change();
    return this.received[index]!;
  }

  /** Resolves when this many mails have arrived, accepted or not. */
  async attempted(count: number): Promise<void> {
    while (this.attempts < count) await this.#change();
  }

  stop(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #reply(answer: () => void): void {
    if (this.replyDelay === 0) answer();
    else setTimeout(answer, this.replyDelay);
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async #received(
    bytes: Buffer,
    session: {
      secure: boolean;
      user?: string;
      envelope: { mailFrom: { address: string }; rcptTo: { address: string }[] };
      connection?: { _socket: Socket };
    },
    done: (error?: Error | null, message?: string) => void,
  ): Promise<void> {
    const raw = bytes.toString('utf8');
    const content = await PostalMime.parse(raw);
    this.attempts++;
    if (this.afterData === 'accept') {
      const { mailFrom, rcptTo } = session.envelope;
      this.received.push({
        from: mailFrom.address,
        to: rcptTo.map(({ address }) => address),
        isSecure: session.secure,
        user: session.user,
        content,
        raw,
      });
    }
    if (this.afterData === 'accept') this.#reply(() => done(null, 'Accepted'));
    else if (this.afterData === 'reject') done(Object.assign(new Error('Try later'), { responseCode: 451 }));
    else if (this.afterData === 'reject permanently')
      done(Object.assign(new Error('This is spam'), { responseCode: 554 }));
    else if (this.afterData === 'close') this.#closeConnections();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #closeConnections(): void {
    for (const connection of this.#server.connections as Iterable<{ _socket: Socket }>)
      connection._socket.destroy();
  }
}

/** Listens on the loopback address, and sends nothing to the clients that connect. */
export async function startSilentServer(): Promise<{ port: number; stop(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
