import { fileURLToPath } from 'node:url';
import { type Route, redirect, route } from '../kernel/http/index.ts';
import type { Pages } from '../kernel/pages/index.ts';

export interface WelcomeOptions {
  readonly serverName: string;
  /** URL of the web client, to which browsers are redirected. */
  readonly webClientLocation: string | undefined;
  /** Whether users may register accounts themselves. */
  readonly openRegistration: boolean;
}

/** Folder of the page's template, `welcome.html`. */
export const welcomeTemplates = fileURLToPath(new URL('./templates', import.meta.url));

/** The route `/`: redirects to the web client if one is configured, otherwise shows a welcome page. */
export function welcomeRoute(
  { serverName, webClientLocation, openRegistration }: WelcomeOptions,
  pages: Pages,
): Route {
  const values = { server_name: serverName, open_registration: openRegistration };
  return route({ method: 'GET', path: '/', auth: 'none', errors: 'page' }, () =>
    webClientLocation === undefined ? pages.page('welcome.html', values) : redirect(webClientLocation),
  );
}
