import type { Static, TObject } from 'typebox';
import type { Rule } from '../../kernel/config/index.ts';
import type { activityOptions } from './activity.ts';
import type { callOptions } from './calls.ts';
import type { captchaOptions } from './captcha.ts';
import type { consentOptions } from './consent.ts';
import { builtInUserTypes, type registrationOptions } from './registration.ts';
import type { sessionOptions } from './sessions.ts';

type Registration = Static<TObject<typeof captchaOptions & typeof registrationOptions>>;
type Sessions = Static<TObject<typeof sessionOptions & typeof registrationOptions>>;
type Activity = Static<TObject<typeof activityOptions>>;
type Calls = Static<TObject<typeof callOptions>>;
type Consent = Static<TObject<typeof consentOptions>>;

const captcha: Rule<Registration> = (values, view) => {
  if (!values.enable_registration_captcha) return;
  for (const key of ['recaptcha_public_key', 'recaptcha_private_key'] as const) {
    if (values[key] === null) view.error('enable_registration_captcha', `needs ${key}`);
  }
  if (!values.enable_registration) view.error('enable_registration_captcha', 'needs enable_registration');
};

const verifiedRegistration: Rule<Registration> = (values, view) => {
  const required = values.registrations_require_3pid.filter(
    (medium) => medium !== 'msisdn' || !values.disable_msisdn_registration,
  );
  const isVerified =
    values.enable_registration_captcha ||
    values.registration_requires_token ||
    values.enable_registration_without_verification ||
    required.length > 0;
  if (values.enable_registration && !isVerified) {
    const message =
      'has no effect: nothing verifies users; require a CAPTCHA, a token or an address, or allow registration without verification (enable_registration_without_verification)';
    view.warn('enable_registration', message);
  }
};

const noEmailDelegate: Rule<Registration> = (_values, view) => {
  if (view.isGiven('account_threepid_delegates.email')) {
    const message = 'is not supported: this server validates mail addresses itself, see the option email';
    view.error('account_threepid_delegates.email', message);
  }
};

const defaultUserType: Rule<Registration> = ({ user_types }, view) => {
  const { default_user_type: type, extra_user_types: extra } = user_types;
  if (type === null || [...builtInUserTypes, ...extra].includes(type)) return;
  const allowed = `${builtInUserTypes.join(', ')} and those of extra_user_types`;
  view.error('user_types.default_user_type', `found ${JSON.stringify(type)}; allowed: ${allowed}`);
};

const sessionsOfGuests: Rule<Sessions> = ({ session_lifetime, allow_guest_access }, view) => {
  if (session_lifetime !== Number.POSITIVE_INFINITY && allow_guest_access) {
    view.warn('session_lifetime', 'conflicts with allow_guest_access: guests cannot log in again');
  }
};

const authenticationSecret: Rule<Sessions> = ({ proto_authentication_service: service }, view) => {
  if (service.enabled && service.secret === null) {
    view.error(
      'proto_authentication_service.secret',
      'must be given (or secret_path) when the service is enabled',
    );
  }
};

const activeUsers: Rule<Activity> = ({ limit_usage_by_mau, max_mau_value }, view) => {
  if (limit_usage_by_mau && max_mau_value === 0) {
    const message = 'must be given, and be above 0, with limit_usage_by_mau';
    view.error('max_mau_value', message, 'limit_usage_by_mau');
  }
};

const liveKit: Rule<Calls> = ({ proto_rtc }, view) => {
  for (const [index, { type, livekit_service_url }] of proto_rtc.transports.entries()) {
    const path = `proto_rtc.transports[${index}].livekit_service_url`;
    if (type !== 'livekit' && livekit_service_url !== null)
      view.warn(path, 'has no effect unless the type is livekit');
    if (type === 'livekit' && livekit_service_url === null)
      view.error(path, 'must be given when the type is livekit');
  }
};

const consentForGuests: Rule<Consent> = ({ user_consent: consent }, view) => {
  if (consent?.send_server_notice_to_guests && consent.server_notice_content === null) {
    view.warn('user_consent.send_server_notice_to_guests', 'has no effect without server_notice_content');
  }
};

const lifetimesOfTokens: Rule<Sessions> = (values, view) => {
  const names = [
    'refreshable_access_token_lifetime',
    'nonrefreshable_access_token_lifetime',
    'refresh_token_lifetime',
  ] as const;
  for (const name of names) {
    if (!view.isGiven(name) || values[name] === Number.POSITIVE_INFINITY) continue;
    if (values[name] > values.session_lifetime)
      view.warn(name, 'has no effect: session_lifetime is shorter, and tokens end with their session');
  }
};

/** Rules for options of accounts that depend on each other. */
export const accountRules = [
  captcha,
  verifiedRegistration,
  noEmailDelegate,
  defaultUserType,
  sessionsOfGuests,
  authenticationSecret,
  activeUsers,
  liveKit,
  consentForGuests,
  lifetimesOfTokens,
];
