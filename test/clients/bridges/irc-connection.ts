import { EventEmitter, once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** A message in a channel of an IRC network. */
export interface IrcMessage {
  readonly nick: string;
  readonly channel: string;
  readonly text: string;
}

interface IrcEvents {
  message: [IrcMessage];
  /** Number or command of a line from the server, for instance `001`; for a PONG with its last parameter, for instance `PONG 3`. */
  reply: [string];
}

/** A user of an IRC network. Source: RFC 1459. */
export class IrcConnection extends EventEmitter<IrcEvents> {
  readonly #socket: Socket;
  #pings = 0;

  private constructor(socket: Socket) {
    super();
    this.#socket = socket;
    this.setMaxListeners(0);
    // The connection breaks when a test stops the network.
    socket.on('error', () => undefined);
    createInterface(socket).on('line', (line) => this.#receive(line));
  }

  /** Connects and registers under a nickname of at most 9 characters. */
  static async open(port: number, nick: string): Promise<IrcConnection> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    const connection = new IrcConnection(socket);
    connection.#send(`NICK ${nick}`);
    connection.#send(`USER ${nick} 0 * :${nick}`);
    await connection.#reply('001');
    return connection;
  }

  /** Joins a channel, and waits until the network has listed its users. */
  async join(channel: string): Promise<void> {
    const joined = this.#reply('366');
    this.#send(`JOIN ${channel}`);
    await joined;
  }

  /** Sends a message, and waits until the network has processed it. */
  async say(channel: string, text: string): Promise<void> {
    this.#send(`PRIVMSG ${channel} :${text}`);
    const ping = ++this.#pings;
    const answered = this.#reply(`PONG ${ping}`);
    this.#send(`PING ${ping}`);
    await answered;
  }

  close(): void {
    this.#socket.destroy();
  }

  #send(line: string): void {
    this.#socket.write(`${line}\r\n`);
  }

  #reply(name: string): Promise<void> {
    return new Promise((resolve) => {
      const check = (reply: string) => {
        if (reply !== name) return;
        this.off('reply', check);
        resolve();
      };
      this.on('reply', check);
    });
  }

  #receive(line: string): void {
    const [, sender = '', command = '', rest = ''] = /^(?::(\S+) )?(\S+) ?(.*)$/.exec(line) ?? [];
    const colon = ` ${rest}`.indexOf(' :');
    const last = colon < 0 ? rest.split(' ').at(-1)! : rest.slice(colon + 1);
    if (command === 'PING') this.#send(`PONG :${last}`);
    else if (command === 'PRIVMSG') {
      const [nick] = sender.split('!') as [string];
      const [channel] = rest.split(' ') as [string];
      this.emit('message', { nick, channel, text: last });
    } else this.emit('reply', command === 'PONG' ? `PONG ${last}` : command);
  }
}
