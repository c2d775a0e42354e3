import type { DocumentedEndpoints } from './documented-endpoint.ts';
import { mediaEndpoints } from './media.ts';
import { roomEndpoints } from './rooms.ts';
import { serverEndpoints } from './server.ts';
import { userEndpoints } from './users.ts';

/**
 * The admin API of the reference server, as documented in version 1.160 (docs/admin_api and
 * docs/usage/administration/admin_api).
 */
export const documentedEndpoints: DocumentedEndpoints = {
  ...userEndpoints,
  ...roomEndpoints,
  ...mediaEndpoints,
  ...serverEndpoints,
};

/** Endpoints of the reference server that this server does not have, with the reason. */
export const missingEndpoints: Readonly<Record<string, string>> = {
  'GET v1/search_users/{}':
    'is not documented, answers with the hashes of passwords, and finds the same users as v2/users?name=',
};

/** Endpoints that only this server has, and what each of them does. */
export const ownEndpoints: Readonly<Record<string, string>> = {
  'GET v1/audit_log': 'lists the requests of administrators',
  'GET v1/effective_configuration': 'lists the options with their values and where these are from',
  'GET v1/overview': 'shows the load and the state of the server',
  'GET v1/statistics/days': 'lists counts of users, rooms, messages and bytes by day',
  'GET v1/room_deletions': 'lists the deletions of a room, even if the server does not know the room',
  'GET v1/room_reports': 'lists the reports of rooms',
  'GET v1/room_reports/{}': 'shows the report of a room',
  'DELETE v1/room_reports/{}': 'deletes the report of a room',
  'POST v1/rooms/{}/redact/{}': 'redacts an event',
  'GET v1/users/{}/rooms': 'lists the rooms of a user with their names',
  'POST v1/users/{}/allow_cross_signing_replacement':
    'is _allow_cross_signing_replacement_without_uia by a name that does not begin with _',
  'GET v1/media/download/{}/{}': 'returns a file, on request a quarantined one',
  'POST v1/send_server_notice_to_all': 'sends a server notice to all users',
  'GET v1/send_server_notice_to_all/{}': 'shows how far a server notice to all users is',
  'DELETE v1/send_server_notice_to_all/{}': 'stops a server notice to all users',
};
