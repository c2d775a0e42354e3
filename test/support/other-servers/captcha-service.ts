import { serveOnLoopback } from '../network/loopback.ts';

/** A CAPTCHA service: its script shows a check box that solves the task. */
export class CaptchaService {
  /** The fields of the received verification requests. */
  readonly verifications: Readonly<Record<string, string>>[] = [];
  /** The status of the responses. */
  status = 200;
  /** Solutions of users (the field `response`) that were accepted. */
  readonly #solved = new Set<string>();
  readonly #origin: string;
  readonly #close: () => Promise<void>;

  private constructor(origin: string, close: () => Promise<void>) {
    this.#origin = origin;
    this.#close = close;
  }

  static async start(): Promise<CaptchaService> {
    let service: CaptchaService | undefined;
    const served = await serveOnLoopback((request, response) => {
      if (request.url === '/recaptcha/api.js') {
        response.writeHead(200, { 'content-type': 'text/javascript' }).end(script);
        return;
      }
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const fields = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
        const body = JSON.stringify({ success: service?.isRight(request.method, fields) ?? false });
        response.writeHead(service?.status ?? 500, { 'content-type': 'application/json' }).end(body);
      });
    });
    service = new CaptchaService(`http://127.0.0.1:${served.port}`, () => served.close());
    return service;
  }

  /** Value of the option `recaptcha_siteverify_api`. */
  get api(): string {
    return `${this.#origin}/recaptcha/api/siteverify`;
  }

  stop(): Promise<void> {
    return this.#close();
  }

  /** Whether the response solves the CAPTCHA. Each response is accepted once. */
  isRight(method: string | undefined, fields: Readonly<Record<string, string>>): boolean {
    this.verifications.push(fields);
    const response = fields['response'] ?? '';
    if (method !== 'POST' || fields['secret'] !== 'the private key') return false;
    if (!response.startsWith('solved') || this.#solved.has(response)) return false;
    this.#solved.add(response);
    return true;
  }
}

const script = `
const show = () => {
  const box = document.querySelector('.g-recaptcha');
  box.innerHTML = '<label><input type="checkbox" id="person"> I am a person</label>' +
    '<textarea name="g-recaptcha-response" hidden></textarea>';
  box.querySelector('input').addEventListener('change', () => {
    box.querySelector('textarea').value = 'solved for ' + box.dataset.sitekey;
  });
};
if (document.readyState === 'loading') addEventListener('DOMContentLoaded', show);
else show();`;
