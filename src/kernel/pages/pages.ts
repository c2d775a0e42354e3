import { type ErrorPage, Reply } from '../http/index.ts';
import type { Templates } from '../templates/index.ts';

/** Directives and their allowed sources, for example `{ 'form-action': "'self' https://app.example.org" }`. */
export type ContentSecurityPolicy = Readonly<Record<string, string>>;

export interface PageOptions {
  /** 200 when absent. */
  readonly status?: number;
  readonly headers?: Reply['headers'];
  /** Overrides directives of the default policy, which allows no scripts and nothing from other hosts. */
  readonly policy?: ContentSecurityPolicy;
}

/**
 * Inline styles are allowed, since operators' templates use them. Scripts are not: a page with scripts overrides the
 * policy.
 */
const defaultPolicy: ContentSecurityPolicy = {
  'default-src': "'none'",
  'style-src': "'self' 'unsafe-inline'",
  'img-src': "'self' data:",
  'font-src': "'self'",
  'form-action': "'self'",
  'base-uri': "'none'",
  'frame-ancestors': "'none'",
};

/** Renders pages from templates. */
export class Pages {
  readonly #templates: Templates;

  constructor(templates: Templates) {
    this.#templates = templates;
  }

  /**
   * Renders a page whose headers forbid caching, framing and sending its URL to other sites.
   * @param template name of the file, for example `welcome.html`
   * @throws Error when the template is missing or faulty; the response is then 500
   */
  async page(
    template: string,
    values: Readonly<Record<string, unknown>>,
    { status = 200, headers = {}, policy = {} }: PageOptions = {},
  ): Promise<Reply> {
    const html = await this.#templates.render(template, values);
    return new Reply(status, html, {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policyText({ ...defaultPolicy, ...policy }),
      'X-Frame-Options': 'DENY',
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-store',
      ...headers,
    });
  }

  /** Reads changed templates again. */
  reload(): void {
    this.#templates.reload();
  }

  /** Renders the page of an error from `error.html`, for routes with `errors: 'page'`. */
  readonly errorPage: ErrorPage = ({ status, errcode, message, headers }, requestId) =>
    this.page('error.html', { status, errcode, message, request_id: requestId }, { status, headers });
}

const policyText = (policy: ContentSecurityPolicy) =>
  Object.entries(policy)
    .map(([directive, allowed]) => `${directive} ${allowed}`)
    .join('; ');
