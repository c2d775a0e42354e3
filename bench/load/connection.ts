import { connect, type Socket } from 'node:net';

export interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

/** The request whose response has not arrived completely. */
interface PendingRequest {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

const headEnd = Buffer.from('\r\n\r\n');
const lineEnd = Buffer.from('\r\n');
const emptyBuffer = Buffer.alloc(0);

/**
 * One HTTP/1.1 keep-alive connection with one request at a time, used by one client of the load. Understands only the
 * HTTP that the servers under load use in their responses, so that the load takes little CPU time from these servers,
 * which run on the same machine. Responses have a `content-length` or are chunked, and are not decompressed.
 */
export class Connection {
  readonly #host: string;
  readonly #port: number;
  /** The end of the request line and the headers that all requests have. */
  readonly #headers: string;
  #socket: Socket | undefined;
  #pending: PendingRequest | undefined;
  #received: Buffer = emptyBuffer;
  /** Number of bytes to receive before parsing again. */
  #needed = 0;

  /** @param token access token for all requests */
  constructor(baseUrl: string, token?: string) {
    const url = new URL(baseUrl);
    this.#host = url.hostname;
    this.#port = Number(url.port || 80);
    this.#headers = ` HTTP/1.1\r\nhost: ${url.host}\r\n${token ? `authorization: Bearer ${token}\r\n` : ''}`;
  }

  /**
   * Sends one request.
   * @param path with the encoded query
   * @param body JSON text
   * @throws Error when the connection breaks, or when a request is pending
   */
  request(method: string, path: string, body?: string): Promise<Answer> {
    if (this.#pending) throw new Error('one request at a time on a connection');
    const socket = this.#open();
    const rest = body === undefined ? '\r\n' : bodyWithHead(body);
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      socket.write(`${method} ${path}${this.#headers}${rest}`);
    });
  }

  /** Closes the connection; a pending request fails. */
  close(): void {
    this.#socket?.destroy();
    this.#fail(new Error('connection closed'));
  }

  #open(): Socket {
    if (this.#socket) return this.#socket;
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true });
    socket.on('data', (bytes) => this.#receive(bytes));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => {
      if (socket === this.#socket) this.#fail(new Error('connection closed by the server'));
    });
    this.#socket = socket;
    return socket;
  }

  #fail(error: Error): void {
    const pending = this.#pending;
    this.#socket = undefined;
    this.#pending = undefined;
    this.#received = emptyBuffer;
    this.#needed = 0;
    pending?.reject(error);
  }

  #receive(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    if (this.#received.length < this.#needed) return;
    const bodyStart = this.#received.indexOf(headEnd) + headEnd.length;
    if (bodyStart < headEnd.length) return;
    const head = this.#received.toString('latin1', 0, bodyStart).toLowerCase();
    const body = isChunked(head) ? unchunk(this.#received, bodyStart) : this.#sized(head, bodyStart);
    if (!body) return;
    const pending = this.#pending;
    this.#pending = undefined;
    this.#received = emptyBuffer;
    this.#needed = 0;
    if (head.includes('\r\nconnection: close')) this.#socket = undefined;
    pending?.resolve({ status: Number(head.slice(9, 12)), body });
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

/** Joins the chunks of a body (RFC 9112 section 7.1); `undefined` while the last chunk is missing. */
function unchunk(received: Buffer, start: number): Buffer | undefined {
  const chunks: Buffer[] = [];
  let position = start;
  for (;;) {
    const sizeEnd = received.indexOf(lineEnd, position);
    if (sizeEnd < 0) return undefined;
    const size = Number.parseInt(received.toString('latin1', position, sizeEnd), 16);
    const chunkStart = sizeEnd + lineEnd.length;
    const chunkEnd = chunkStart + size;
    if (received.length < chunkEnd + lineEnd.length) return undefined;
    if (size === 0) return Buffer.concat(chunks);
    chunks.push(received.subarray(chunkStart, chunkEnd));
    position = chunkEnd + lineEnd.length;
  }
}
