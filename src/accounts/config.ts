import { type SectionType, section } from '../kernel/config/index.ts';
import { accountRules } from './options/account-rules.ts';
import { activityOptions } from './options/activity.ts';
import { callOptions } from './options/calls.ts';
import { captchaOptions } from './options/captcha.ts';
import { consentOptions } from './options/consent.ts';
import { registrationOptions } from './options/registration.ts';
import { secretOptions } from './options/secrets.ts';
import { sessionOptions } from './options/sessions.ts';

const options = {
  ...registrationOptions,
  ...captchaOptions,
  ...sessionOptions,
  ...secretOptions,
  ...activityOptions,
  ...consentOptions,
  ...callOptions,
};

/** Options about registration, login, consent and calls. */
export const accountsSection = section({
  title: 'Accounts and sessions',
  description: 'Who may have an account, how users log in, and how active users are counted.',
  options,
  rules: accountRules,
});

/** The values of these options. */
export type AccountsConfig = SectionType<typeof accountsSection>;
