import { OutboundError, type OutboundHttp, type OutboundRequest } from '../../kernel/outbound/index.ts';
import { isJsonObject, type JsonObject, MatrixError, parseJson, unknown } from '../../protocol/index.ts';

/** A text message that the service sends on request. */
export interface TextMessage extends JsonObject {
  readonly country: string;
  readonly phone_number: string;
  readonly client_secret: string;
  readonly send_attempt: number;
}

/** Timeout of requests in milliseconds; a user waits for them. */
const timeout = 10_000;

/** Maximum bytes of a response. */
const maxBytes = 65_536;

/** Errcodes of the service that are passed on to clients. */
const passedOnCodes = new Set([
  'M_INVALID_PARAM',
  'M_LIMIT_EXCEEDED',
  'M_SEND_ERROR',
  'M_DESTINATION_REJECTED',
  'M_SESSION_EXPIRED',
]);

/**
 * The service that sends text messages to phones and validates their numbers: `account_threepid_delegates.msisdn`.
 * Source: identity service API (version 1), "Phone number associations" and "General".
 */
export class PhoneDelegate {
  readonly #http: Pick<OutboundHttp, 'fetch'>;
  readonly #base: string;

  /** @param base URL of the service, without a path of the API */
  constructor(http: Pick<OutboundHttp, 'fetch'>, base: string) {
    this.#http = http;
    this.#base = `${base.replace(/\/+$/, '')}/_matrix/identity/api/v1`;
  }

  /**
   * Requests that the service sends a text message with a token.
   * @returns the service's session id
   * @throws MatrixError
   */
  async sendToken(message: TextMessage, nextLink: string | undefined): Promise<string> {
    const { sid } = await this.#post('/validate/msisdn/requestToken', {
      ...message,
      ...(nextLink !== undefined && { next_link: nextLink }),
    });
    if (typeof sid !== 'string') throw invalidResponse();
    return sid;
  }

  /** Passes a token on to the service. @returns whether the service has sent this token @throws MatrixError */
  async submit(sid: string, clientSecret: string, token: string): Promise<boolean> {
    const body = { sid, client_secret: clientSecret, token };
    return (await this.#post('/validate/msisdn/submitToken', body))['success'] === true;
  }

  /**
   * Returns the number that a session has validated, and when; `undefined` unless the service reports a validated
   * number.
   * @throws MatrixError 502 when the service cannot be reached or sends an invalid response
   */
  async validated(
    sid: string,
    clientSecret: string,
  ): Promise<{ address: string; validatedAt: number } | undefined> {
    const query = new URLSearchParams({ sid, client_secret: clientSecret });
    const { status, json } = await this.#fetch(`/3pid/getValidated3pid?${query}`, {});
    if (status !== 200) return undefined;
    const { medium, address, validated_at: validatedAt } = json;
    if (medium !== 'msisdn' || typeof address !== 'string' || typeof validatedAt !== 'number')
      return undefined;
    return { address, validatedAt };
  }

  async #post(path: string, body: JsonObject): Promise<JsonObject> {
    const headers = { 'content-type': 'application/json' };
    const { status, json } = await this.#fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (status === 200) return json;
    const { errcode } = json;
    const code = typeof errcode === 'string' && passedOnCodes.has(errcode) ? errcode : 'M_UNKNOWN';
    const message = 'The service for phone numbers refused the request';
    throw new MatrixError(code === 'M_UNKNOWN' ? 502 : 400, code, message);
  }

  async #fetch(
    path: string,
    request: Partial<OutboundRequest>,
  ): Promise<{ status: number; json: JsonObject }> {
    try {
      const url = new URL(`${this.#base}${path}`);
      const { status, body } = await this.#http.fetch(url, { ...request, timeout, maxBody: maxBytes });
      const json = parseJson(body.toString('utf8'));
      if (isJsonObject(json)) return { status, json };
    } catch (error) {
      if (error instanceof OutboundError)
        throw unknown('The service for phone numbers cannot be reached', 502);
    }
    throw invalidResponse();
  }
}

const invalidResponse = () => unknown('The service for phone numbers sent an invalid response', 502);
