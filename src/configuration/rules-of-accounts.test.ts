import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { problemsOf, type RuleCase, testRules } from './test/rule-case.ts';

const cases: RuleCase[] = [
  {
    rule: 'requires max_mau_value with limit_usage_by_mau',
    invalid: 'limit_usage_by_mau: true',
    kind: 'error',
    path: 'max_mau_value',
    message: /must be given, and be above 0, with limit_usage_by_mau/,
    valid: 'limit_usage_by_mau: true\nmax_mau_value: 5',
  },
  ...(['public', 'private'] as const).map(
    (half): RuleCase => ({
      rule: `requires the ${half} key of a CAPTCHA`,
      invalid: `enable_registration: true\nenable_registration_captcha: true\nrecaptcha_${half === 'public' ? 'private' : 'public'}_key: k`,
      kind: 'error',
      path: 'enable_registration_captcha',
      message: new RegExp(`needs recaptcha_${half}_key`),
      valid:
        'enable_registration: true\nenable_registration_captcha: true\nrecaptcha_public_key: k\nrecaptcha_private_key: k',
    }),
  ),
  {
    rule: 'refuses a CAPTCHA without registration',
    invalid: 'enable_registration_captcha: true\nrecaptcha_public_key: k\nrecaptcha_private_key: k',
    kind: 'error',
    path: 'enable_registration_captcha',
    message: /needs enable_registration$/,
    valid:
      'enable_registration: true\nenable_registration_captcha: true\nrecaptcha_public_key: k\nrecaptcha_private_key: k',
  },
  {
    rule: 'warns about registration without any verification',
    invalid: 'enable_registration: true',
    kind: 'warning',
    path: 'enable_registration',
    message: /enable_registration_without_verification/,
    valid: 'enable_registration: true\nenable_registration_without_verification: true',
  },
  ...(['private_chat', 'trusted_private_chat'] as const).map(
    (preset): RuleCase => ({
      rule: `requires auto_join_mxid_localpart with the preset ${preset}`,
      invalid: `autocreate_auto_join_room_preset: ${preset}`,
      kind: 'error',
      path: 'autocreate_auto_join_room_preset',
      message: new RegExp(`^${preset} needs auto_join_mxid_localpart`),
      valid: `autocreate_auto_join_room_preset: ${preset}\nauto_join_mxid_localpart: host`,
    }),
  ),
  {
    rule: 'refuses a default_user_type that is neither built in nor one of extra_user_types',
    invalid: 'user_types: {default_user_type: human, extra_user_types: [robot]}',
    kind: 'error',
    path: 'user_types.default_user_type',
    message: /^found "human"; allowed: bot, support and those of extra_user_types$/,
    valid: 'user_types: {default_user_type: human, extra_user_types: [human]}',
  },
  {
    rule: 'refuses account_threepid_delegates.email, which has been removed',
    invalid: 'account_threepid_delegates: {email: "https://id.example.org"}',
    kind: 'error',
    path: 'account_threepid_delegates.email',
    message: /is not supported: this server validates mail addresses itself/,
    valid: 'account_threepid_delegates: {msisdn: "https://id.example.org"}',
  },
  {
    rule: 'warns about session_lifetime together with guest access',
    invalid: 'session_lifetime: 24h\nallow_guest_access: true',
    kind: 'warning',
    path: 'session_lifetime',
    message: /allow_guest_access/,
    valid: 'session_lifetime: infinity\nallow_guest_access: true',
  },
  ...['refreshable_access_token', 'nonrefreshable_access_token', 'refresh_token'].map(
    (token): RuleCase => ({
      rule: `warns about a ${token}_lifetime that is longer than session_lifetime`,
      invalid: `session_lifetime: 1h\n${token}_lifetime: 2h`,
      kind: 'warning',
      path: `${token}_lifetime`,
      message: /has no effect: session_lifetime is shorter/,
      valid: `session_lifetime: 1h\n${token}_lifetime: 1h`,
    }),
  ),
  {
    rule: 'warns that registration is closed when it requires mail addresses that cannot be validated',
    invalid: 'enable_registration: true\nregistrations_require_3pid: [email]',
    kind: 'warning',
    path: 'registrations_require_3pid',
    message: /^closes registration: it needs email$/,
    valid: 'enable_registration: true\nregistrations_require_3pid: [email]\nemail: {notif_from: a}',
  },
  {
    rule: 'warns that registration is closed when it requires phone numbers that cannot be validated',
    invalid: 'enable_registration: true\nregistrations_require_3pid: [msisdn]',
    kind: 'warning',
    path: 'registrations_require_3pid',
    message: /^closes registration: it needs account_threepid_delegates\.msisdn$/,
    valid:
      'enable_registration: true\nenable_registration_without_verification: true\nregistrations_require_3pid: [msisdn]\ndisable_msisdn_registration: true',
  },
  {
    rule: 'requires a secret with proto_authentication_service',
    invalid: 'proto_authentication_service: {enabled: true}',
    kind: 'error',
    path: 'proto_authentication_service.secret',
    message: /must be given \(or secret_path\)/,
    valid: 'proto_authentication_service: {enabled: true, secret: s}',
  },
  {
    rule: 'warns about send_server_notice_to_guests without server_notice_content',
    invalid: 'user_consent: {send_server_notice_to_guests: true}',
    kind: 'warning',
    path: 'user_consent.send_server_notice_to_guests',
    message: /has no effect without server_notice_content/,
    valid: 'user_consent: {send_server_notice_to_guests: false}',
  },
  {
    rule: 'warns about block_events_error without template_dir, since users cannot agree then',
    invalid: 'form_secret: f\nuser_consent: {version: 1.0, block_events_error: agree first}',
    kind: 'warning',
    path: 'user_consent.block_events_error',
    message: /this server does not have without user_consent.template_dir/,
    valid: 'form_secret: f\nuser_consent: {template_dir: /t, version: 1.0, block_events_error: agree first}',
  },
  {
    rule: 'warns about default_identity_server without public_baseurl',
    invalid: 'default_identity_server: "https://id.example.org"',
    kind: 'warning',
    path: 'default_identity_server',
    message: /has no effect without public_baseurl/,
    valid: 'default_identity_server: "https://id.example.org"\npublic_baseurl: "https://example.org/"',
  },
  {
    rule: 'requires notif_from for mail',
    invalid: 'email: {smtp_host: mail.example.org}',
    kind: 'error',
    path: 'email.notif_from',
    message: /must be given when email is given/,
    valid: 'email: {smtp_host: mail.example.org, notif_from: "a <a@example.org>"}',
  },
  {
    rule: 'refuses subjects of mails with unknown placeholders',
    invalid: 'email: {notif_from: a, subjects: {password_reset: "Hello %(user)s"}}',
    kind: 'error',
    path: 'email.subjects.password_reset',
    message: /has the unknown placeholder %\(user\)s/,
    valid: 'email: {notif_from: a, subjects: {password_reset: "100% for %(app)s"}}',
  },
  {
    rule: 'warns about require_transport_security together with force_tls',
    invalid: 'email: {notif_from: a, force_tls: true, require_transport_security: true}',
    kind: 'warning',
    path: 'email.require_transport_security',
    message: /has no effect with force_tls/,
    valid: 'email: {notif_from: a, force_tls: true}',
  },
  ...(['force_tls', 'require_transport_security'] as const).map(
    (name): RuleCase => ({
      rule: `refuses ${name} with enable_tls: false`,
      invalid: `email: {notif_from: a, enable_tls: false, ${name}: true}`,
      kind: 'error',
      path: `email.${name}`,
      message: /contradicts enable_tls: false/,
      valid: `email: {notif_from: a, ${name}: true}`,
    }),
  ),
  ...['template_dir: /t', 'version: 1.0'].map(
    (member): RuleCase => ({
      rule: `requires template_dir and version for the consent resource, given only ${member}`,
      invalid: `form_secret: f\nuser_consent: {${member}}\nlisteners: [{port: 8008, type: http, resources: [{names: [consent]}]}]`,
      kind: 'error',
      path: 'listeners[0].resources[0].names',
      message: member.startsWith('version')
        ? /needs user_consent.template_dir/
        : /needs user_consent.version/,
      valid:
        'form_secret: f\nuser_consent: {template_dir: /t, version: 1.0}\nlisteners: [{port: 8008, type: http, resources: [{names: [consent]}]}]',
    }),
  ),
  {
    rule: 'requires form_secret for the consent resource',
    invalid:
      'user_consent: {template_dir: /t, version: 1.0}\nlisteners: [{port: 8008, type: http, resources: [{names: [consent]}]}]',
    kind: 'error',
    path: 'listeners[0].resources[0].names',
    message: /needs form_secret/,
    valid:
      'form_secret: f\nuser_consent: {template_dir: /t, version: 1.0}\nlisteners: [{port: 8008, type: http, resources: [{names: [consent]}]}]',
  },
  {
    rule: 'requires server_notices for server_notice_content',
    invalid:
      'form_secret: f\nuser_consent: {version: 1.0, server_notice_content: {msgtype: m.text, body: agree}}',
    kind: 'error',
    path: 'user_consent.server_notice_content',
    message: /needs server_notices/,
    valid:
      'form_secret: f\nuser_consent: {version: 1.0, server_notice_content: {msgtype: m.text, body: agree}}\nserver_notices: {system_mxid_localpart: notices}',
  },
  {
    rule: 'requires a version of the policy for block_events_error',
    invalid: 'form_secret: f\nuser_consent: {block_events_error: agree first}',
    kind: 'error',
    path: 'user_consent.block_events_error',
    message: /needs user_consent.version/,
    valid: 'form_secret: f\nuser_consent: {version: 1.0, block_events_error: agree first}',
  },
  {
    rule: 'requires form_secret for block_events_error',
    invalid: 'user_consent: {version: 1.0, block_events_error: agree first}',
    kind: 'error',
    path: 'user_consent.block_events_error',
    message: /needs form_secret/,
    valid: 'form_secret: f\nuser_consent: {version: 1.0, block_events_error: agree first}',
  },
  ...['block_events_error: agree first', 'server_notice_content: {msgtype: m.text, body: agree}'].map(
    (member): RuleCase => {
      const listeners = (name: string) =>
        `listeners: [{port: 8008, type: http, resources: [{names: [${name}]}]}]`;
      const rest = `form_secret: f\nserver_notices: {system_mxid_localpart: notices}\nuser_consent: {template_dir: /t, version: 1.0, ${member}}`;
      return {
        rule: `warns about ${member.split(':')[0]} without a listener with the resource consent`,
        invalid: `${rest}\n${listeners('client')}`,
        kind: 'warning',
        path: `user_consent.${member.split(':')[0]}`,
        message: /on a page that no listener serves/,
        valid: `${rest}\n${listeners('consent')}`,
      };
    },
  ),
  {
    rule: 'requires system_mxid_localpart for server notices',
    invalid: 'server_notices: {room_name: News}',
    kind: 'error',
    path: 'server_notices.system_mxid_localpart',
    message: /must be given/,
    valid: 'server_notices: {system_mxid_localpart: news}',
  },
];

describe('configuration rules of accounts, mail and consent', () => {
  testRules(cases);

  it('reports a missing max_mau_value at the line of limit_usage_by_mau, which requires it', () => {
    const problems = problemsOf('hs_disabled: false\nlimit_usage_by_mau: true', 'error');
    assert.deepEqual(
      problems.map(({ path, at }) => [path, at?.line]),
      [['max_mau_value', 3]],
    );
  });
});
