import { Reply, type Route, route } from '../kernel/http/index.ts';
import { welcomePage } from './page.ts';

export interface WelcomeOptions {
  readonly serverName: string;
  /** Where the web client is; browsers are sent there. */
  readonly webClientLocation: string | undefined;
  /** Whether people may make accounts themselves. */
  readonly openRegistration: boolean;
}

const html = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
};

/** `/`: a page that says what runs here and what to do next, or the way to the web client. */
export function welcomeRoute(options: WelcomeOptions): Route {
  const { webClientLocation } = options;
  const page = welcomePage(options);
  return route({ method: 'GET', path: '/', auth: 'none' }, () =>
    webClientLocation === undefined
      ? new Reply(200, page, html)
      : new Reply(302, undefined, { Location: webClientLocation }),
  );
}
