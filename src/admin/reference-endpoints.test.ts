import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { adminApiPath } from '../../scripts/admin-api.ts';

/**
 * The endpoints of the reference server's documentation (version 1.157: docs/admin_api, docs/usage/administration/admin_api)
 * and those that only its code has. `{}` stands for a path parameter.
 */
const documented = `
  GET,PUT v2/users/{}
  GET v2/users
  GET v3/users
  GET v1/whois/{}
  POST v1/deactivate/{}
  PUT v1/suspend/{}
  POST v1/reset_password/{}
  GET,PUT v1/users/{}/admin
  GET v1/users/{}/memberships
  GET v1/users/{}/joined_rooms
  GET v1/users/{}/sent_invite_count
  GET v1/users/{}/cumulative_joined_room_count
  GET v1/users/{}/accountdata
  GET,DELETE v1/users/{}/media
  POST v1/users/{}/login
  POST v1/users/{}/_allow_cross_signing_replacement_without_uia
  GET,POST v2/users/{}/devices
  POST v2/users/{}/delete_devices
  GET,PUT,DELETE v2/users/{}/devices/{}
  GET v1/users/{}/pushers
  POST,DELETE v1/users/{}/shadow_ban
  GET,POST,DELETE v1/users/{}/override_ratelimit
  GET v1/username_available
  GET v1/auth_providers/{}/users/{}
  GET v1/threepid/{}/users/{}
  POST v1/user/{}/redact
  GET v1/user/redact_status/{}
  GET v1/rooms
  GET,DELETE v1/rooms/{}
  GET v1/rooms/{}/members
  GET v1/rooms/{}/state
  GET v1/rooms/{}/messages
  GET v1/rooms/{}/timestamp_to_event
  GET,PUT v1/rooms/{}/block
  DELETE v2/rooms/{}
  GET v2/rooms/{}/delete_status
  GET v2/rooms/delete_status/{}
  POST v1/rooms/{}/make_room_admin
  GET,DELETE v1/rooms/{}/forward_extremities
  GET v1/rooms/{}/context/{}
  GET v1/rooms/{}/hierarchy
  POST v1/join/{}
  POST v1/purge_history/{}
  POST v1/purge_history/{}/{}
  GET v1/purge_history_status/{}
  GET v1/room/{}/media
  GET,DELETE v1/media/{}/{}
  POST v1/media/quarantine/{}/{}
  POST v1/media/unquarantine/{}/{}
  POST v1/room/{}/media/quarantine
  POST v1/quarantine_media/{}
  POST v1/user/{}/media/quarantine
  GET v1/media/quarantine_changes
  POST v1/media/protect/{}
  POST v1/media/unprotect/{}
  POST v1/media/delete
  POST v1/media/{}/delete
  POST v1/purge_media_cache
  GET,POST v1/register
  GET v1/registration_tokens
  POST v1/registration_tokens/new
  GET,PUT,DELETE v1/registration_tokens/{}
  GET v1/federation/destinations
  GET v1/federation/destinations/{}
  GET v1/federation/destinations/{}/rooms
  POST v1/federation/destinations/{}/reset_connection
  GET v1/event_reports
  GET,DELETE v1/event_reports/{}
  GET v1/user_reports
  GET,DELETE v1/user_reports/{}
  GET v1/background_updates/status
  GET,POST v1/background_updates/enabled
  POST v1/background_updates/start_job
  GET v1/scheduled_tasks
  GET v1/statistics/users/media
  GET v1/statistics/database/rooms
  POST v1/send_server_notice
  PUT v1/send_server_notice/{}
  POST v1/account_validity/validity
  GET,PUT v1/experimental_features/{}
  GET v1/fetch_event/{}
  GET v1/server_version
  GET v1/search_users/{}
`;

/** Endpoints that this server does not have, with the reason. */
const absent: Readonly<Record<string, string>> = {
  'GET v1/search_users/{}':
    'is not documented, answers with the hashes of passwords, and finds the same users as v2/users?name=',
};

test('the admin API has every endpoint of the documentation of the reference server', () => {
  const file = join(import.meta.dirname, '..', '..', adminApiPath);
  const { paths } = JSON.parse(readFileSync(file, 'utf8')) as { paths: Record<string, object> };
  const served = new Set(
    Object.entries(paths).flatMap(([path, operations]) =>
      Object.keys(operations).map(
        (method) =>
          `${method.toUpperCase()} ${path.replace('/_synapse/admin/', '').replaceAll(/\{\w+\}/g, '{}')}`,
      ),
    ),
  );
  const expected = documented
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [methods = '', path = ''] = line.trim().split(' ');
      return methods.split(',').map((method) => `${method} ${path}`);
    });
  const missing = expected.filter((endpoint) => !served.has(endpoint));
  assert.deepEqual(missing, Object.keys(absent));
});
