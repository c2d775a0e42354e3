import { validateHeaderName, validateHeaderValue } from 'node:http';
import { type Authenticate, Reply, type Route, type RouteRequest, route } from '../../kernel/http/index.ts';
import { MatrixError, unknown } from '../../protocol/index.ts';
import type { WebHandler, WebRequest, WebResponse } from '../api/index.ts';
import { CallbackFailure, type ModuleCalls } from '../calls/module-calls.ts';

/** Maximum bytes of a request body. */
const bodyLimit = 1024 * 1024;

/** Milliseconds in which a handler has to answer. */
const handlerTimeout = 30_000;

const methods = ['GET', 'POST', 'PUT', 'DELETE'] as const;

/** A web resource of a module. */
export interface ModuleResource {
  readonly module: string;
  /** As routes declare paths (`/_server` for `/_synapse`), without a slash at the end. */
  readonly path: string;
  readonly handler: WebHandler;
}

/** Returns the routes of a resource: its path and all paths below, for all methods. */
export function webRoutes({ module, path, handler }: ModuleResource, calls: ModuleCalls): Route[] {
  return methods.map((method) =>
    route(
      { method, path: [path, `${path}/*`], auth: 'on-demand', bodyMode: 'stream', bodyLimit },
      async (request) => {
        const webRequest = await webRequestOf(method, request as unknown as RouteRequest);
        return answer(calls, module, path, () => handler(webRequest));
      },
    ),
  );
}

/** Runs a handler. A `MatrixError` that it throws is the response. */
async function answer(
  calls: ModuleCalls,
  module: string,
  path: string,
  run: () => WebResponse | Promise<WebResponse>,
): Promise<Reply> {
  let refusal: MatrixError | undefined;
  const guarded = async () => {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof MatrixError)) throw error;
      refusal = error;
      return undefined;
    }
  };
  try {
    const response = await calls.run(module, `web resource ${path}`, guarded, handlerTimeout);
    if (refusal) throw refusal;
    return replyTo(calls, module, path, response);
  } catch (error) {
    if (!(error instanceof CallbackFailure)) throw error;
    throw unknown('This resource failed to answer');
  }
}

/** Returns the reply of a handler's answer. @throws CallbackFailure when it cannot be sent */
function replyTo(calls: ModuleCalls, module: string, path: string, response: WebResponse | undefined): Reply {
  try {
    const { status = 200, headers = {}, body } = response ?? {};
    if (!Number.isInteger(status) || status < 200 || status > 599)
      throw new TypeError('The status is not an integer from 200 to 599');
    for (const [name, value] of Object.entries(headers)) {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    }
    const isSerialized = typeof body !== 'object' || body instanceof Uint8Array;
    return new Reply(status, isSerialized ? body : JSON.stringify(body), headers);
  } catch (error) {
    throw calls.failed(module, `web resource ${path}`, 'answer', error);
  }
}

async function webRequestOf(method: string, request: RouteRequest): Promise<WebRequest> {
  const { headers, ip, params, signal, stream, url } = request;
  const authenticate = request.authenticate as unknown as Authenticate;
  return {
    method,
    url,
    path: (params as Readonly<Record<string, string>>)['*'] ?? '',
    query: new URL(url, 'http://localhost').searchParams,
    headers,
    body: await bytesOf(stream),
    ip,
    signal,
    async user() {
      const requester = await authenticate();
      if (requester === undefined) return undefined;
      const { userId, deviceId, isGuest, isAdmin } = requester;
      return { userId, deviceId, isGuest, isAdmin };
    },
  };
}

async function bytesOf(stream: NodeJS.ReadableStream | undefined): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of (stream ?? []) as unknown as AsyncIterable<Uint8Array>) chunks.push(chunk);
  return Buffer.concat(chunks);
}
