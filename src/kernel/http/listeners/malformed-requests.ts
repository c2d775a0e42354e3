import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { MatrixError } from '../../../protocol/index.ts';

/** Responses by the error codes of Node's HTTP server. */
const refusals: Readonly<Record<string, MatrixError>> = {
  HPE_HEADER_OVERFLOW: new MatrixError(431, 'M_TOO_LARGE', 'The URL or a header is too long'),
  ERR_HTTP_REQUEST_TIMEOUT: new MatrixError(408, 'M_UNKNOWN', 'The request took too long to arrive'),
};

const malformed = new MatrixError(400, 'M_UNKNOWN', 'The request is not proper HTTP');

/** A connection of Node's HTTP server, with the response that it is sending. */
interface HttpConnection extends Duplex {
  readonly _httpMessage?: { readonly headersSent: boolean } | null;
}

/**
 * Responds to a request that is malformed, has too long a head or arrives too slowly, and closes the connection. While
 * another response is being sent, the connection is only closed: the client would take the refusal for a part of that
 * response.
 */
export function refuseMalformed(error: NodeJS.ErrnoException, socket: HttpConnection): void {
  const isResponding = socket._httpMessage?.headersSent === true;
  if (!socket.writable || isResponding || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const refusal = refusals[error.code ?? ''] ?? malformed;
  const body = JSON.stringify(refusal);
  const head = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    'Access-Control-Allow-Origin: *',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}
