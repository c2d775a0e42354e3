import { fileURLToPath } from 'node:url';
import { type Route, redirect, route } from '../kernel/http/index.ts';
import type { Pages } from '../kernel/pages/index.ts';

export interface WelcomeOptions {
  /** The command with which operators run this program. */
  readonly command: string;
  readonly serverName: string;
  /** URL of the web client. Browsers are redirected to it. */
  readonly webClientLocation: string | undefined;
  /** Whether users may register accounts themselves. */
  readonly openRegistration: boolean;
  /** Whether registration needs a token. */
  readonly needsToken: boolean;
  /** Whether there is an account, so that the page need not say how to make the first one. */
  readonly hasAccounts: () => Promise<boolean>;
}

/** Folder of the page's template, `welcome.html`. */
export const welcomeTemplates = fileURLToPath(new URL('./templates', import.meta.url));

/** The route `/`: redirects to the web client if one is configured, otherwise shows a welcome page. */
export function welcomeRoute(options: WelcomeOptions, pages: Pages): Route {
  const { serverName, webClientLocation, hasAccounts } = options;
  const values = {
    server_name: serverName,
    is_local_name: serverName === 'localhost',
    open_registration: options.openRegistration,
    needs_token: options.needsToken,
    command: options.command,
  };
  return route({ method: 'GET', path: '/', auth: 'none', errors: 'page' }, async () =>
    webClientLocation === undefined
      ? pages.page('welcome.html', { ...values, has_accounts: await hasAccounts() })
      : redirect(webClientLocation),
  );
}
