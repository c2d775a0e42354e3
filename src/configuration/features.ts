import type { Feature } from '../kernel/config/index.ts';

/**
 * Features for warnings about options that are not in force, because no test proves their effect. `consequence` tells
 * operators what the server does not do while an option of the feature is not in force. Each such option belongs to
 * exactly one feature, by its own path or by a path above it (features.test.ts).
 */
export const features: readonly Feature[] = [
  {
    name: 'email',
    options: [
      'email.smtp_host',
      'email.smtp_port',
      'email.smtp_user',
      'email.smtp_pass',
      'email.force_tls',
      'email.require_transport_security',
      'email.enable_tls',
      'email.tlsname',
      'email.notif_from',
      'email.app_name',
      'email.client_base_url',
      'email.invite_client_location',
      'email.validation_token_lifetime',
      'email.subjects.password_reset',
      'email.subjects.email_validation',
      'rc_3pid_validation',
      'next_link_domain_whitelist',
      'request_token_inhibit_3pid_errors',
    ],
    consequence: 'no email is sent, so passwords cannot be reset and addresses not be validated by email',
  },
  {
    name: 'changes of email addresses and phone numbers',
    options: ['enable_3pid_changes'],
    consequence: 'users cannot add or remove addresses and phone numbers',
  },
  {
    name: 'single sign-on by OpenID Connect',
    options: ['oidc_providers'],
    consequence: 'users cannot log in with these providers',
  },
  {
    name: 'single sign-on by SAML',
    options: ['saml2_config'],
    consequence: 'users cannot log in with SAML',
  },
  {
    name: 'single sign-on by CAS',
    options: ['cas_config'],
    switches: ['cas_config.enabled'],
    consequence: 'users cannot log in with CAS',
  },
  {
    name: 'single sign-on',
    options: ['sso'],
    consequence: 'no client is exempt from the confirmation of logins, and logins do not update profiles',
  },
  {
    name: 'login with JSON web tokens',
    options: ['jwt_config'],
    switches: ['jwt_config.enabled'],
    consequence: 'users cannot log in with a JSON web token',
  },
  {
    name: 'login via an existing session',
    options: ['login_via_existing_session'],
    switches: ['login_via_existing_session.enabled'],
    consequence: 'a session cannot log in another client',
  },
  {
    name: 'signed login and guest tokens',
    options: ['macaroon_secret_key', 'macaroon_secret_key_path'],
    consequence: 'no token is signed with this key: tokens are random and stored in the database',
    isHarmless: true,
  },
  {
    name: 'tracking of puppeted users',
    options: ['track_puppeted_user_ips'],
    consequence: 'IP addresses of administrators who act as other users are not recorded',
  },
  {
    name: 'message retention',
    options: ['retention'],
    switches: ['retention.enabled'],
    consequence: 'old messages are not deleted',
  },
  {
    name: 'workers',
    options: ['worker_replication_secret'],
    consequence: 'there are no worker processes: one process does all work',
  },
  {
    name: 'custom templates',
    options: ['templates'],
    consequence: 'emails do not use the templates of this directory',
  },
];
