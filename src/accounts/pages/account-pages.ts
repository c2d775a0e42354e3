import { fileURLToPath } from 'node:url';
import type { Route } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import type { Randomness } from '../../kernel/randomness.ts';
import type { AccountOptions } from '../account-options.ts';
import { consentRoutes } from '../consent/consent-routes.ts';
import type { AccountsSlice } from '../open.ts';
import { fallbackRoutes } from './fallback-routes.ts';
import { loginPageRoutes } from './login-page.ts';
import { passwordResetRoutes } from './password-reset-page.ts';
import { registrationPageRoutes } from './registration-page-routes.ts';
import { RegistrationPages } from './registration-pages.ts';
import { StagePages } from './stage-pages.ts';

/** Folder of the templates of these pages. */
export const accountTemplates = fileURLToPath(new URL('../templates', import.meta.url));

export interface AccountPagesDeps {
  readonly slice: AccountsSlice;
  readonly pages: Pages;
  readonly randomness: Randomness;
  /** URL of the web client, shown after a registration. */
  readonly webClient?: string | undefined;
}

type Options = Pick<
  AccountOptions,
  | 'server_name'
  | 'public_baseurl'
  | 'user_consent'
  | 'registration_requires_token'
  | 'registrations_require_3pid'
  | 'password_config'
>;

/**
 * Returns the routes of pages about accounts for browsers: consent, stages of interactive authentication, registration,
 * login and new passwords.
 */
export function accountPageRoutes(
  { slice, pages, randomness, webClient }: AccountPagesDeps,
  options: Options,
): Route[] {
  const stagePages = new StagePages({ ...slice, pages });
  const registrationPages = new RegistrationPages({ ...slice, stagePages, pages, webClient }, options);
  return [
    ...consentRoutes(slice, options),
    ...fallbackRoutes({ stagePages, pages, randomness }),
    ...registrationPageRoutes(registrationPages),
    ...passwordResetRoutes({ ...slice, stagePages, pages }, options),
    ...loginPageRoutes({ ...slice, pages, randomness }, options),
  ];
}
