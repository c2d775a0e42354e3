import { type ErrorPage, Reply } from '../http/index.ts';
import type { Templates } from '../templates/index.ts';

/** Directives and what they allow, for instance `{ 'form-action': "'self' https://app.example.org" }`. */
export type ContentSecurityPolicy = Readonly<Record<string, string>>;

export interface PageOptions {
  /** 200 if absent. */
  readonly status?: number;
  readonly headers?: Reply['headers'];
  /** Replaces directives of the usual policy, which allows no scripts and nothing from other hosts. */
  readonly policy?: ContentSecurityPolicy;
}

/** Inline styles are allowed, since templates of operators have them; scripts need a directive of the page. */
const usualPolicy: ContentSecurityPolicy = {
  'default-src': "'none'",
  'style-src': "'self' 'unsafe-inline'",
  'img-src': "'self' data:",
  'font-src': "'self'",
  'form-action': "'self'",
  'base-uri': "'none'",
  'frame-ancestors': "'none'",
};

/** Makes pages from templates. */
export class Pages {
  readonly #templates: Templates;

  constructor(templates: Templates) {
    this.#templates = templates;
  }

  /**
   * Makes a page. It is not stored by caches, not shown in frames, and its address is not told to other sites.
   * @param template name of the file, for instance `welcome.html`
   * @throws Error when there is no such template, or it is faulty: the request is answered with 500
   */
  async page(
    template: string,
    values: Readonly<Record<string, unknown>>,
    { status = 200, headers = {}, policy = {} }: PageOptions = {},
  ): Promise<Reply> {
    const html = await this.#templates.render(template, values);
    return new Reply(status, html, {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policyText({ ...usualPolicy, ...policy }),
      'X-Frame-Options': 'DENY',
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-store',
      ...headers,
    });
  }

  /** Reads templates again that have changed. */
  reload(): void {
    this.#templates.reload();
  }

  /** Makes the page of an error from `error.html`, for routes with `errors: 'page'`. */
  readonly errorPage: ErrorPage = ({ status, errcode, message, headers }, requestId) =>
    this.page('error.html', { status, errcode, message, request_id: requestId }, { status, headers });
}

const policyText = (policy: ContentSecurityPolicy) =>
  Object.entries(policy)
    .map(([directive, allowed]) => `${directive} ${allowed}`)
    .join('; ');
