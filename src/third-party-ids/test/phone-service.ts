import type { IncomingMessage } from 'node:http';
import { type LoopbackServer, serveOnLoopback } from '../../../test/support/network/loopback.ts';

/** The validation of a phone number. */
interface PhoneSession {
  readonly clientSecret: string;
  readonly address: string;
  /** The code in the text message. */
  readonly token: string;
  isValidated: boolean;
}

/** A service that validates phone numbers, with the endpoints of identity servers that homeservers use. */
export class PhoneService {
  /** The validations that have begun, by `sid`. */
  readonly sessions = new Map<string, PhoneSession>();
  /** Bodies of the requests for text messages. */
  readonly requests: Record<string, unknown>[] = [];
  /** Replaces the response to requests for text messages. */
  refusal: { readonly status: number; readonly body: object } | undefined;
  readonly #served: LoopbackServer;

  private constructor(served: LoopbackServer) {
    this.#served = served;
  }

  static async start(): Promise<PhoneService> {
    let service: PhoneService | undefined;
    const served = await serveOnLoopback((request, response) => {
      void service?.answer(request).then(({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      });
    });
    service = new PhoneService(served);
    return service;
  }

  /** The value of `account_threepid_delegates.msisdn`. */
  get url(): string {
    return `http://phones.example:${this.#served.port}/`;
  }

  stop(): Promise<void> {
    return this.#served.close();
  }

  async answer(request: IncomingMessage): Promise<{ status: number; body: object }> {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://phones.example');
    if (pathname === '/_matrix/identity/api/v1/3pid/getValidated3pid') {
      const session = this.sessions.get(searchParams.get('sid') ?? '');
      if (session?.clientSecret !== searchParams.get('client_secret')) return refusal('M_NO_VALID_SESSION');
      if (!session.isValidated) return refusal('M_SESSION_NOT_VALIDATED');
      return { status: 200, body: { medium: 'msisdn', address: session.address, validated_at: 5 } };
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, string>;
    if (pathname === '/_matrix/identity/api/v1/validate/msisdn/requestToken') return this.#send(body);
    if (pathname !== '/_matrix/identity/api/v1/validate/msisdn/submitToken') return refusal('M_UNRECOGNIZED');
    const session = this.sessions.get(body['sid']!);
    const success = session?.clientSecret === body['client_secret'] && session?.token === body['token'];
    if (session && success) session.isValidated = true;
    return { status: 200, body: { success } };
  }

  #send(body: Record<string, string>) {
    this.requests.push(body);
    if (this.refusal) return this.refusal;
    const sid = String(this.sessions.size + 1);
    const address = `44${String(body['phone_number'])
      .replaceAll(/\D/g, '')
      .replace(/^0|^44/, '')}`;
    const token = `code${sid}`;
    this.sessions.set(sid, { clientSecret: body['client_secret']!, address, token, isValidated: false });
    return { status: 200, body: { sid } };
  }
}

const refusal = (errcode: string) => ({ status: 400, body: { errcode, error: 'No' } });
