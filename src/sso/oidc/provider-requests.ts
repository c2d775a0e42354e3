import type { OutboundHttp } from '../../kernel/outbound/index.ts';
import { isJsonObject, type JsonObject, parseJson } from '../../protocol/index.ts';

/** Milliseconds until a provider must have answered, while a user waits; and maximum bytes of its answer. */
const [timeout, maxBody] = [10_000, 256 * 1024];

/** Sends requests to OpenID Connect providers: with bounds, and to allowed addresses only. */
export class ProviderRequests {
  readonly #http: Pick<OutboundHttp, 'fetch'>;

  constructor(http: Pick<OutboundHttp, 'fetch'>) {
    this.#http = http;
  }

  /** Sends a request for openid-client, with the signature of `fetch`. Redirects are not followed. */
  readonly fetch = async (
    url: string,
    { method, headers, body }: { method: string; headers: Record<string, string>; body?: unknown },
  ): Promise<Response> => {
    const answer = await this.#http.fetch(new URL(url), {
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
    const json = status === 200 ? parseJson(text) : undefined;
    if (!isJsonObject(json)) throw new Error(`${url} responded ${status} without a JSON object`);
    return json;
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
    } = await this.#http.fetch(new URL(url), { headers, timeout, maxBody });
    const contentType = String(answered['content-type'] ?? '')
      .split(';', 1)[0]!
      .trim()
      .toLowerCase();
    return { status, contentType, text: body.toString('utf8') };
  }
}
