import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Maximum number of requests of one connection that wait for the responses to earlier ones. */
const maxWaiting = 100;

interface Connection {
  /** The response to the newest request that has been passed to the handler. */
  current: ServerResponse;
  readonly waiting: [IncomingMessage, ServerResponse][];
}

/**
 * Passes the requests of each connection to a handler one at a time: the next one when the response to the last one is
 * sent. A client may send thousands of requests without reading a response, and Node reports all of them at once, so
 * all responses would be in memory. Closes connections with too many waiting requests.
 */
export function oneAtATimePerConnection(handler: RequestListener): RequestListener {
  const connections = new WeakMap<Socket, Connection>();
  const handle = (connection: Connection, request: IncomingMessage, response: ServerResponse) => {
    connection.current = response;
    handler(request, response);
  };
  const handleNext = (socket: Socket, connection: Connection) => {
    // The previous response or the client has closed the connection: the next response could not be sent.
    if (!socket.writable) return;
    const next = connection.waiting.shift();
    if (next === undefined) return;
    handle(connection, ...next);
    if (connection.waiting.length > 0) handleNextLater(socket, connection);
  };
  const handleNextLater = (socket: Socket, connection: Connection) =>
    connection.current.once('close', () => handleNext(socket, connection));
  return (request, response) => {
    const { socket } = request;
    const connection = connections.get(socket);
    if (connection === undefined) {
      connections.set(socket, { current: response, waiting: [] });
      return handler(request, response);
    }
    if (!socket.writable) return;
    const { current, waiting } = connection;
    if (waiting.length === 0 && current.writableFinished) return handle(connection, request, response);
    if (waiting.length === maxWaiting) return void socket.destroy();
    waiting.push([request, response]);
    if (waiting.length === 1) handleNextLater(socket, connection);
  };
}
