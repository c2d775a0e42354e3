import { describe } from 'node:test';
import { type RuleCase, testRules } from './test/rule-case.ts';

const cases: RuleCase[] = [
  {
    rule: 'limiting active users needs their number',
    breaks: 'limit_usage_by_mau: true',
    kind: 'error',
    path: 'max_mau_value',
    says: /must be given, and be above 0, with limit_usage_by_mau/,
    keeps: 'limit_usage_by_mau: true\nmax_mau_value: 5',
  },
  ...(['public', 'private'] as const).map(
    (half): RuleCase => ({
      rule: `a CAPTCHA needs its ${half} key`,
      breaks: `enable_registration: true\nenable_registration_captcha: true\nrecaptcha_${half === 'public' ? 'private' : 'public'}_key: k`,
      kind: 'error',
      path: 'enable_registration_captcha',
      says: new RegExp(`needs recaptcha_${half}_key`),
      keeps:
        'enable_registration: true\nenable_registration_captcha: true\nrecaptcha_public_key: k\nrecaptcha_private_key: k',
    }),
  ),
  {
    rule: 'a CAPTCHA needs registration',
    breaks: 'enable_registration_captcha: true\nrecaptcha_public_key: k\nrecaptcha_private_key: k',
    kind: 'error',
    path: 'enable_registration_captcha',
    says: /needs enable_registration$/,
    keeps:
      'enable_registration: true\nenable_registration_captcha: true\nrecaptcha_public_key: k\nrecaptcha_private_key: k',
  },
  {
    rule: 'registration without any proof must be meant',
    breaks: 'enable_registration: true',
    kind: 'warning',
    path: 'enable_registration',
    says: /enable_registration_without_verification/,
    keeps: 'enable_registration: true\nenable_registration_without_verification: true',
  },
  ...(['private_chat', 'trusted_private_chat'] as const).map(
    (preset): RuleCase => ({
      rule: `rooms made with ${preset} need someone to invite to them`,
      breaks: `autocreate_auto_join_room_preset: ${preset}`,
      kind: 'error',
      path: 'autocreate_auto_join_room_preset',
      says: new RegExp(`^${preset} needs auto_join_mxid_localpart`),
      keeps: `autocreate_auto_join_room_preset: ${preset}\nauto_join_mxid_localpart: host`,
    }),
  ),
  {
    rule: 'nobody else validates mail addresses any more',
    breaks: 'account_threepid_delegates: {email: "https://id.example.org"}',
    kind: 'error',
    path: 'account_threepid_delegates.email',
    says: /is gone since 1.66.0/,
    keeps: 'account_threepid_delegates: {msisdn: "https://id.example.org"}',
  },
  {
    rule: 'limited sessions do not go together with guests',
    breaks: 'session_lifetime: 24h\nallow_guest_access: true',
    kind: 'warning',
    path: 'session_lifetime',
    says: /allow_guest_access/,
    keeps: 'session_lifetime: infinity\nallow_guest_access: true',
  },
  {
    rule: 'an authentication service needs a secret',
    breaks: 'proto_authentication_service: {enabled: true}',
    kind: 'error',
    path: 'proto_authentication_service.secret',
    says: /must be given \(or secret_path\)/,
    keeps: 'proto_authentication_service: {enabled: true, secret: s}',
  },
  {
    rule: 'guests get no notice when there is none',
    breaks: 'user_consent: {send_server_notice_to_guests: true}',
    kind: 'warning',
    path: 'user_consent.send_server_notice_to_guests',
    says: /has no effect without server_notice_content/,
    keeps: 'user_consent: {send_server_notice_to_guests: false}',
  },
  {
    rule: 'an identity server is suggested with a public URL only',
    breaks: 'default_identity_server: "https://id.example.org"',
    kind: 'warning',
    path: 'default_identity_server',
    says: /has no effect without public_baseurl/,
    keeps: 'default_identity_server: "https://id.example.org"\npublic_baseurl: "https://example.org/"',
  },
  {
    rule: 'mail needs a sender',
    breaks: 'email: {smtp_host: mail.example.org}',
    kind: 'error',
    path: 'email.notif_from',
    says: /must be given when mail is sent/,
    keeps: 'email: {smtp_host: mail.example.org, notif_from: "a <a@example.org>"}',
  },
  {
    rule: 'STARTTLS is not required where TLS is forced',
    breaks: 'email: {notif_from: a, force_tls: true, require_transport_security: true}',
    kind: 'warning',
    path: 'email.require_transport_security',
    says: /has no effect with force_tls/,
    keeps: 'email: {notif_from: a, force_tls: true}',
  },
  ...(['force_tls', 'require_transport_security'] as const).map(
    (name): RuleCase => ({
      rule: `${name} needs TLS`,
      breaks: `email: {notif_from: a, enable_tls: false, ${name}: true}`,
      kind: 'error',
      path: `email.${name}`,
      says: /contradicts enable_tls: false/,
      keeps: `email: {notif_from: a, ${name}: true}`,
    }),
  ),
  ...['template_dir: /t', 'version: 1.0'].map(
    (member): RuleCase => ({
      rule: `the consent forms need what goes with ${member}`,
      breaks: `form_secret: f\nuser_consent: {${member}}\nlisteners: [{port: 8008, type: http, resources: [{names: [consent]}]}]`,
      kind: 'error',
      path: 'listeners[0].resources[0].names',
      says: member.startsWith('version') ? /needs user_consent.template_dir/ : /needs user_consent.version/,
      keeps:
        'form_secret: f\nuser_consent: {template_dir: /t, version: 1.0}\nlisteners: [{port: 8008, type: http, resources: [{names: [consent]}]}]',
    }),
  ),
  {
    rule: 'the consent forms need a secret',
    breaks:
      'user_consent: {template_dir: /t, version: 1.0}\nlisteners: [{port: 8008, type: http, resources: [{names: [consent]}]}]',
    kind: 'error',
    path: 'listeners[0].resources[0].names',
    says: /needs form_secret/,
    keeps:
      'form_secret: f\nuser_consent: {template_dir: /t, version: 1.0}\nlisteners: [{port: 8008, type: http, resources: [{names: [consent]}]}]',
  },
  {
    rule: 'notices about consent need server notices',
    breaks: 'user_consent: {server_notice_content: {msgtype: m.text, body: agree}}',
    kind: 'error',
    path: 'user_consent.server_notice_content',
    says: /needs server_notices/,
    keeps:
      'user_consent: {server_notice_content: {msgtype: m.text, body: agree}}\nserver_notices: {system_mxid_localpart: notices}',
  },
  {
    rule: 'server notices need a sender',
    breaks: 'server_notices: {room_name: News}',
    kind: 'error',
    path: 'server_notices.system_mxid_localpart',
    says: /must be given/,
    keeps: 'server_notices: {system_mxid_localpart: news}',
  },
];

describe('rules of accounts, mail and consent', () => {
  testRules(cases);
});
