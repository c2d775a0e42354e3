import type { DocumentedEndpoints } from './documented-endpoint.ts';

const user = `
  name displayname avatar_url threepids[](medium address added_at validated_at)
  external_ids[](auth_provider external_id) is_guest admin deactivated erased shadow_banned locked suspended
  creation_ts last_seen_ts appservice_id user_type consent_server_notice_sent consent_version consent_ts`;

const userList = {
  query: 'user_id? name? guests? admins? deactivated? limit? from? order_by? dir? not_user_type? locked?',
  response: `
    users[](name is_guest admin user_type deactivated erased shadow_banned displayname avatar_url creation_ts
      last_seen_ts locked)
    next_token? total`,
  ours: { 'response users[].suspended': 'whether the account is suspended, as in GET v2/users/{}' },
};

const mediaOrder = 'limit? from? order_by? dir?';
const rateLimit = 'messages_per_second? burst_count?';

/** The endpoints of the reference server's docs/admin_api/user_admin_api.md, account_validity.md, experimental_features.md and register_api.md. */
export const userEndpoints: DocumentedEndpoints = {
  'GET v2/users/{}': { response: user },
  'PUT v2/users/{}': {
    body: `
      password? logout_devices? displayname? avatar_url? threepids[]?(medium address)
      external_ids[]?(auth_provider external_id) admin? deactivated? locked? user_type?`,
    response: user,
  },
  'GET v2/users': userList,
  'GET v3/users': userList,
  'GET v1/whois/{}': { response: 'user_id devices{}(sessions[](connections[](ip last_seen user_agent)))' },
  'POST v1/deactivate/{}': { body: 'erase?', response: 'id_server_unbind_result' },
  // The only field of the response is `user_` with the user id and `_suspended`.
  'PUT v1/suspend/{}': { body: 'suspend', response: '{}' },
  'POST v1/reset_password/{}': { body: 'new_password logout_devices?', response: '' },
  'GET v1/users/{}/admin': { response: 'admin' },
  'PUT v1/users/{}/admin': { body: 'admin', response: '' },
  'GET v1/users/{}/memberships': { response: 'memberships{}' },
  'GET v1/users/{}/joined_rooms': { response: 'joined_rooms[] total' },
  'GET v1/users/{}/sent_invite_count': { query: 'from_ts', response: 'invite_count' },
  'GET v1/users/{}/cumulative_joined_room_count': {
    query: 'from_ts',
    response: 'cumulative_joined_room_count',
  },
  'GET v1/users/{}/accountdata': { response: 'account_data(global{} rooms{})' },
  'GET v1/users/{}/media': {
    query: mediaOrder,
    response: `
      media[](created_ts last_access_ts media_id media_length media_type quarantined_by safe_from_quarantine upload_name)
      next_token? total`,
  },
  'DELETE v1/users/{}/media': { query: mediaOrder, response: 'deleted_media[] total' },
  'POST v1/users/{}/login': { body: 'valid_until_ms?', response: 'access_token' },
  'POST v1/users/{}/_allow_cross_signing_replacement_without_uia': {
    response: 'updatable_without_uia_before_ms',
  },
  'GET v2/users/{}/devices': {
    response: `
      devices[](device_id display_name? last_seen_ip last_seen_user_agent last_seen_ts user_id dehydrated) total`,
  },
  'POST v2/users/{}/devices': { body: 'device_id', response: '' },
  'POST v2/users/{}/delete_devices': { body: 'devices[]', response: '' },
  'GET v2/users/{}/devices/{}': {
    response: 'device_id display_name? last_seen_ip last_seen_user_agent last_seen_ts user_id',
    ours: { 'response dehydrated': 'whether the device is dehydrated, as in the list of devices' },
  },
  'PUT v2/users/{}/devices/{}': { body: 'display_name?', response: '' },
  'DELETE v2/users/{}/devices/{}': { response: '' },
  'GET v1/users/{}/pushers': {
    response: `
      pushers[](app_display_name app_id data(url? format?) device_display_name kind lang profile_tag pushkey enabled
        device_id)
      total`,
  },
  'POST v1/users/{}/shadow_ban': { response: '' },
  'DELETE v1/users/{}/shadow_ban': { response: '' },
  'GET v1/users/{}/override_ratelimit': { response: rateLimit },
  'POST v1/users/{}/override_ratelimit': { body: rateLimit, response: 'messages_per_second burst_count' },
  'DELETE v1/users/{}/override_ratelimit': { response: '' },
  'GET v1/username_available': { query: 'username', response: 'available' },
  'GET v1/auth_providers/{}/users/{}': { response: 'user_id' },
  'GET v1/threepid/{}/users/{}': { response: 'user_id' },
  'POST v1/user/{}/redact': {
    body: 'rooms[] reason? limit? use_admin? after_ts? before_ts?',
    response: 'redact_id',
  },
  'GET v1/user/redact_status/{}': { response: 'status failed_redactions{} error?' },
  'POST v1/account_validity/validity': {
    body: 'user_id expiration_ts? enable_renewal_emails?',
    response: 'expiration_ts',
  },
  'GET v1/experimental_features/{}': { response: 'features(msc3881 msc3575 msc4222)' },
  'PUT v1/experimental_features/{}': { body: 'features{}', response: '' },
  'GET v1/register': { response: 'nonce' },
  'POST v1/register': {
    body: `
      nonce username password displayname? admin? user_type? mac refresh_token? device_id? initial_device_display_name?
      inhibit_login?`,
    response: 'user_id home_server access_token? device_id? refresh_token? expires_in_ms?',
  },
};
