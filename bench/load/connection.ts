import { connect, type Socket } from 'node:net';

export interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

const headEnd = Buffer.from('\r\n\r\n');
const lineEnd = Buffer.from('\r\n');
const nothing = Buffer.alloc(0);

/**
 * One HTTP/1.1 connection that is kept alive, with one request at a time: what one client of the load is. It knows
 * as little of HTTP as the answers of the servers under test need, so that the load takes little of the machine that
 * it shares with them. The answers are whole (`content-length` or chunked), never decoded.
 */
export class Connection {
  readonly #host: string;
  readonly #port: number;
  readonly #headers: string;
  #socket: Socket | undefined;
  #waiting: Waiting | undefined;
  #received: Buffer = nothing;
  /** Bytes that must be there before it is worth looking again. */
  #needed = 0;

  /** @param token access token of the user that all requests are made for. */
  constructor(baseUrl: string, token?: string) {
    const url = new URL(baseUrl);
    this.#host = url.hostname;
    this.#port = Number(url.port || 80);
    this.#headers = ` HTTP/1.1\r\nhost: ${url.host}\r\n${token ? `authorization: Bearer ${token}\r\n` : ''}`;
  }

  /**
   * Sends one request. @param path with the query, encoded. @param body JSON text.
   * @throws Error when the connection breaks, or when a request is already under way.
   */
  request(method: string, path: string, body?: string): Promise<Answer> {
    if (this.#waiting) throw new Error('one request at a time on a connection');
    const socket = this.#open();
    const tail = body === undefined ? '\r\n' : bodyWithHead(body);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      socket.write(`${method} ${path}${this.#headers}${tail}`);
    });
  }

  /** Ends the connection; a request under way fails. */
  close(): void {
    this.#socket?.destroy();
    this.#lost(new Error('connection closed'));
  }

  #open(): Socket {
    if (this.#socket) return this.#socket;
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true });
    socket.on('data', (bytes) => this.#receive(bytes));
    socket.on('error', (error) => this.#lost(error));
    socket.on('close', () => {
      if (socket === this.#socket) this.#lost(new Error('connection closed by the server'));
    });
    this.#socket = socket;
    return socket;
  }

  #lost(error: Error): void {
    const waiting = this.#waiting;
    this.#socket = undefined;
    this.#waiting = undefined;
    this.#received = nothing;
    this.#needed = 0;
    waiting?.reject(error);
  }

  #receive(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    if (this.#received.length < this.#needed) return;
    const bodyStart = this.#received.indexOf(headEnd) + headEnd.length;
    if (bodyStart < headEnd.length) return;
    const head = this.#received.toString('latin1', 0, bodyStart).toLowerCase();
    const body = isChunked(head) ? unchunk(this.#received, bodyStart) : this.#sized(head, bodyStart);
    if (!body) return;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.#received = nothing;
    this.#needed = 0;
    if (head.includes('\r\nconnection: close')) this.#socket = undefined;
    waiting?.resolve({ status: Number(head.slice(9, 12)), body });
  }

  #sized(head: string, bodyStart: number): Buffer | undefined {
    const bodyEnd = bodyStart + contentLength(head);
    this.#needed = bodyEnd;
    return this.#received.length < bodyEnd ? undefined : this.#received.subarray(bodyStart, bodyEnd);
  }
}

function bodyWithHead(body: string): string {
  return `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function isChunked(head: string): boolean {
  return head.includes('\r\ntransfer-encoding: chunked');
}

function contentLength(head: string): number {
  const name = '\r\ncontent-length: ';
  const start = head.indexOf(name);
  return start < 0 ? 0 : Number.parseInt(head.slice(start + name.length), 10);
}

/** The body out of its chunks (RFC 9112 section 7.1), or `undefined` while the last one is missing. */
function unchunk(received: Buffer, start: number): Buffer | undefined {
  const chunks: Buffer[] = [];
  let at = start;
  for (;;) {
    const sizeEnd = received.indexOf(lineEnd, at);
    if (sizeEnd < 0) return undefined;
    const size = Number.parseInt(received.toString('latin1', at, sizeEnd), 16);
    const chunkStart = sizeEnd + lineEnd.length;
    const chunkEnd = chunkStart + size;
    if (received.length < chunkEnd + lineEnd.length) return undefined;
    if (size === 0) return Buffer.concat(chunks);
    chunks.push(received.subarray(chunkStart, chunkEnd));
    at = chunkEnd + lineEnd.length;
  }
}
