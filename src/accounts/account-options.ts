import type { ServerName } from '../protocol/index.ts';
import type { AccountsConfig } from './config.ts';

/** Options about accounts, under the names of the configuration file. Durations are in milliseconds. */
export interface AccountOptions
  extends Pick<
    AccountsConfig,
    | 'enable_registration'
    | 'enable_registration_without_verification'
    | 'registrations_require_3pid'
    | 'disable_msisdn_registration'
    | 'registration_requires_token'
    | 'enable_registration_captcha'
    | 'user_consent'
    | 'form_secret'
    | 'login_via_existing_session'
    | 'track_puppeted_user_ips'
    | 'recaptcha_public_key'
    | 'recaptcha_private_key'
    | 'recaptcha_siteverify_api'
    | 'registration_shared_secret'
    | 'bcrypt_rounds'
    | 'allow_guest_access'
    | 'inhibit_user_in_use_error'
    | 'allow_underscore_prefixed_registration'
    | 'session_lifetime'
    | 'refreshable_access_token_lifetime'
    | 'refresh_token_lifetime'
    | 'nonrefreshable_access_token_lifetime'
    | 'ui_auth'
    | 'password_config'
    | 'user_types'
  > {
  readonly server_name: ServerName;
  /** Null for the HTTPS URL of the server name. */
  readonly public_baseurl: string | null;
}

/** The rules for new passwords. */
export type PasswordPolicyOptions = AccountOptions['password_config']['policy'];
