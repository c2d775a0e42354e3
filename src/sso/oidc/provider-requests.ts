import { isJsonObject, type JsonObject, parseJson } from '../../protocol/index.ts';
import { fetchConfigured, type OperatorRequests } from '../operator-requests.ts';

/** Milliseconds until a provider must have responded. */
const timeout = 10_000;

/** Maximum bytes of a response of a provider. */
const maxBody = 256 * 1024;

/**
 * Sends requests to an OpenID Connect provider, with bounds. Endpoints of the configuration may be at private
 * addresses; endpoints that the discovery document names may be at private addresses only if the document itself is at
 * a private address.
 */
export class ProviderRequests {
  readonly #requests: OperatorRequests;
  readonly #configured: ReadonlySet<string>;
  #isPrivate = false;

  /** @param configured URLs of the configuration */
  constructor(requests: OperatorRequests, configured: ReadonlySet<string>) {
    this.#requests = requests;
    this.#configured = configured;
  }

  /** Fetches the discovery document, whose URL follows from the configuration. @throws Error */
  async discovery(url: string): Promise<JsonObject> {
    let isPrivate = false;
    const headers = { accept: 'application/json' };
    const request = { headers, timeout, maxBody };
    const { status, body } = await fetchConfigured(this.#requests, new URL(url), request, () => {
      isPrivate = true;
    });
    this.#isPrivate = isPrivate;
    return jsonObject(url, status, body.toString('utf8'));
  }

  /** Sends a request for openid-client, with the signature of `fetch`. Redirects are not followed. */
  readonly fetch = async (
    url: string,
    { method, headers, body }: { method: string; headers: Record<string, string>; body?: unknown },
  ): Promise<Response> => {
    const answer = await this.#httpFor(url).fetch(new URL(url), {
      method: method as 'GET' | 'POST',
      headers,
      ...(body !== undefined && body !== null && { body: String(body) }),
      timeout,
      maxBody,
    });
    const contentType = String(answer.headers['content-type'] ?? 'application/octet-stream');
    const hasBody = answer.status !== 204 && answer.status !== 304;
    return new Response(hasBody ? new Uint8Array(answer.body) : null, {
      status: answer.status,
      headers: { 'content-type': contentType },
    });
  };

  /** Fetches a JSON object. @throws Error */
  async json(url: string): Promise<JsonObject> {
    const { status, text } = await this.text(url);
    return jsonObject(url, status, text);
  }

  /** Fetches a text, with an access token if one is given. */
  async text(
    url: string,
    accessToken?: string,
  ): Promise<{ readonly status: number; readonly contentType: string; readonly text: string }> {
    const headers = {
      accept: 'application/json, application/jwt',
      ...(accessToken !== undefined && { authorization: `Bearer ${accessToken}` }),
    };
    const {
      status,
      headers: answered,
      body,
    } = await this.#httpFor(url).fetch(new URL(url), { headers, timeout, maxBody });
    const contentType = String(answered['content-type'] ?? '')
      .split(';', 1)[0]!
      .trim()
      .toLowerCase();
    return { status, contentType, text: body.toString('utf8') };
  }

  #httpFor(url: string) {
    const { http, guardedHttp } = this.#requests;
    return this.#isPrivate || this.#configured.has(url) ? http : guardedHttp;
  }
}

/** @throws Error */
function jsonObject(url: string, status: number, text: string): JsonObject {
  const json = status === 200 ? parseJson(text) : undefined;
  if (!isJsonObject(json)) throw new Error(`${url} responded ${status} without a JSON object`);
  return json;
}
