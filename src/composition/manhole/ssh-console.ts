import type { Socket } from 'node:net';
import type { AuthContext, Connection, PseudoTtyInfo, ServerChannel, Session } from 'ssh2';
import ssh2 from 'ssh2';
import type { Logger } from '../../kernel/observability/index.ts';
import type { LoginAttempts } from './login-attempts.ts';

/** A connection is closed after this number of wrong passwords. */
const maxWrongPasswords = 3;

/** The connection between a prompt and its client. */
export interface Console {
  readonly stream: ServerChannel | Socket;
  /** Whether the client is a terminal. The prompt then writes colours and edits lines. */
  readonly isTerminal: boolean;
}

interface SshConsoleDeps {
  readonly hostKey: string;
  readonly attempts: LoginAttempts;
  readonly log: Logger;
  /** Opens a prompt after a login. */
  readonly open: (console: Console) => void;
}

/**
 * Serves the debugging console by SSH: a prompt after a login with a password. Runs no commands, transfers no files and
 * forwards no ports.
 */
export class SshConsole {
  readonly #deps: SshConsoleDeps;
  readonly #server: ssh2.Server;
  /** The functions to call after a login, by address and port of the client. */
  readonly #onLogin = new Map<string, () => void>();

  constructor(deps: SshConsoleDeps) {
    this.#deps = deps;
    this.#server = new ssh2.Server(
      { hostKeys: [deps.hostKey], ident: 'hearth' },
      (connection, { ip, port }) => this.#serve(connection, ip, port),
    );
  }

  /**
   * Serves a connection whose bytes have not been read yet.
   * @param onLogin called after a login
   */
  serve(socket: Socket, onLogin: () => void): void {
    const client = clientOf(socket.remoteAddress, socket.remotePort);
    this.#onLogin.set(client, onLogin);
    socket.once('close', () => this.#onLogin.delete(client));
    this.#server.injectSocket(socket);
  }

  #serve(connection: Connection, ip: string, port: number): void {
    const { log } = this.#deps;
    let wrongPasswords = 0;
    connection.on('error', (error) =>
      log.debug({ err: error, ip }, 'A connection to the debugging console failed'),
    );
    connection.on('authentication', (context: AuthContext) => {
      if (context.method !== 'password') return context.reject(['password']);
      if (this.#deps.attempts.isAdmitted(context, ip)) return context.accept();
      wrongPasswords += 1;
      if (wrongPasswords < maxWrongPasswords) context.reject(['password']);
      else connection.end();
    });
    connection.on('ready', () => {
      this.#onLogin.get(clientOf(ip, port))?.();
      connection.on('session', (accept) => this.#openSession(accept()));
    });
  }

  #openSession(session: Session): void {
    let terminal: PseudoTtyInfo | undefined;
    let channel: ServerChannel | undefined;
    session.on('pty', (accept, _reject, info) => {
      terminal = info;
      accept?.();
    });
    session.on('window-change', (accept, _reject, { cols, rows }) => {
      accept?.();
      if (!channel) return;
      Object.assign(channel, { columns: cols, rows });
      channel.emit('resize');
    });
    session.on('shell', (accept) => {
      channel = accept();
      // The prompt reads the size of the terminal from its output.
      if (terminal) Object.assign(channel, { columns: terminal.cols, rows: terminal.rows });
      this.#deps.open({ stream: channel, isTerminal: terminal !== undefined });
    });
  }
}

const clientOf = (address: string | undefined, port: number | undefined) => `${address} ${port}`;
