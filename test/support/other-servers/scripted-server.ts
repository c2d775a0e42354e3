import type { IncomingMessage, ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { buffer, text } from 'node:stream/consumers';
import { authorize } from '../../../src/federation-client/requests/request-signature.ts';
import { canonicalJson, type JsonObject, type SigningKey, signJson } from '../../../src/protocol/index.ts';
import { newSigningKey } from '../inputs/signing-key.ts';
import { serveOnLoopback } from '../network/loopback.ts';
import type { TestAuthority } from '../network/test-authority.ts';

/** A received request; its path begins with `/_matrix` and is decoded. */
export interface ScriptedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The JSON body. */
  readonly body: JsonObject;
  readonly raw: IncomingMessage;
}

/** A response: JSON with status 200, `[status, JSON]`, or `undefined` when the handler wrote it itself. */
export type ScriptedAnswer = JsonObject | readonly [number, JsonObject] | undefined;

export type ScriptedHandler = (
  request: ScriptedRequest,
  response: ServerResponse,
) => ScriptedAnswer | Promise<ScriptedAnswer>;

/** A response to a request of the scripted server. */
export interface ReceivedAnswer {
  readonly status: number;
  /** The JSON body; empty when the body is not JSON. */
  readonly body: JsonObject;
  /** The media type of the body. */
  readonly type: string;
  /** The bytes of the body. */
  readonly bytes: Buffer;
}

/**
 * A server whose responses a test defines. By default it publishes its key and responds M_NOT_FOUND to all other
 * requests.
 */
export interface ScriptedServer {
  readonly name: string;
  readonly key: SigningKey;
  readonly port: number;
  /** All requests received, in order, except those for its key. */
  readonly receivedRequests: ScriptedRequest[];
  /**
   * Sets the handler for requests whose `METHOD path` begins with `start`; later handlers take precedence.
   */
  on(start: string, handler: ScriptedHandler): void;
  /**
   * Sends a signed request to a server.
   * @param path as it is sent; it begins with `/_matrix`
   * @param body JSON, or its canonical text
   * @param signed the text that the signature covers, when it differs from the body
   */
  request(
    destination: string,
    method: string,
    path: string,
    body?: JsonObject | string,
    signed?: string,
  ): Promise<ReceivedAnswer>;
  stop(): Promise<void>;
}

export async function startScriptedServer({
  name,
  authority,
  portOf,
}: {
  readonly name: string;
  readonly authority: TestAuthority;
  /** Returns the port of a server of the test. */
  readonly portOf: (name: string) => number;
}): Promise<ScriptedServer> {
  const key = newSigningKey('scripted');
  const receivedRequests: ScriptedRequest[] = [];
  const handlers: { start: string; handler: ScriptedHandler }[] = [];
  const send = (response: ServerResponse, status: number, body: JsonObject) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  const server = await serveOnLoopback(async (raw, response) => {
    const url = new URL(raw.url!, 'https://x');
    const path = decodeURIComponent(url.pathname);
    if (path.startsWith('/_matrix/key/v2/server')) return void send(response, 200, publishedKeys(name, key));
    const body = (await text(raw)) || '{}';
    const request = {
      method: raw.method!,
      path,
      query: url.searchParams,
      body: JSON.parse(body) as JsonObject,
      raw,
    };
    receivedRequests.push(request);
    const handler = handlers.findLast(({ start }) => `${request.method} ${path}`.startsWith(start));
    const answer = handler
      ? await handler.handler(request, response)
      : ([404, { errcode: 'M_NOT_FOUND', error: 'Not scripted' }] as const);
    if (Array.isArray(answer)) send(response, answer[0] as number, answer[1] as JsonObject);
    else if (answer !== undefined) send(response, 200, answer as JsonObject);
  }, authority.issue(name));
  return {
    name,
    key,
    port: server.port,
    receivedRequests,
    on: (start, handler) => void handlers.push({ start, handler }),
    request: (destination, method, path, body, signed) =>
      sendSigned(
        { name, key, authority, port: portOf(destination) },
        destination,
        method,
        path,
        body,
        signed,
      ),
    stop: () => server.close(),
  };
}

function publishedKeys(name: string, key: SigningKey): JsonObject {
  const content = {
    server_name: name,
    verify_keys: { [key.keyId]: { key: key.publicKey.base64 } },
    old_verify_keys: {},
    valid_until_ts: Date.now() + 86_400_000,
  };
  return signJson(content, name, key);
}

function sendSigned(
  from: { name: string; key: SigningKey; authority: TestAuthority; port: number },
  destination: string,
  method: string,
  path: string,
  body: JsonObject | string | undefined,
  signed: string | undefined,
): Promise<ReceivedAnswer> {
  const content = typeof body === 'string' ? body : body && canonicalJson(body, 'as written');
  const parts = { method, uri: path, origin: from.name, destination, content: signed ?? content };
  return new Promise((resolve, reject) => {
    const request = httpsRequest(
      {
        host: '127.0.0.1',
        port: from.port,
        servername: destination,
        ca: from.authority.pem,
        method,
        path,
        headers: {
          host: destination,
          authorization: authorize(parts, from.key),
          ...(content !== undefined && { 'content-type': 'application/json' }),
        },
      },
      async (response) => {
        const bytes = await buffer(response);
        const type = response.headers['content-type'] ?? '';
        const body = type.startsWith('application/json') ? (JSON.parse(bytes.toString()) as JsonObject) : {};
        resolve({ status: response.statusCode!, body, type, bytes });
      },
    );
    request.on('error', reject);
    request.end(content);
  });
}
