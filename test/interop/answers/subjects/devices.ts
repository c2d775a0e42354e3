import type { Subject } from '../compared-request.ts';

const auth = {
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user: '{anna}' },
  password: 'a password',
};

export const devices: Subject = {
  subject: 'devices',
  requests: [
    ['anna', 'GET /devices'],
    ['anna', 'GET /devices/{anna-device}'],
    ['anna', 'GET /devices/UNKNOWN'],
    ['anna', 'GET /devices/{ben-device}', undefined, { note: "another user's" }],
    ['anna', 'PUT /devices/{anna-device}', { display_name: 'A name' }],
    ['anna', 'PUT /devices/{anna-device}', {}, { note: 'empty' }],
    ['anna', 'PUT /devices/{anna-device}', { display_name: 7 }, { note: 'wrong type' }],
    ['anna', 'PUT /devices/{anna-device}', { display_name: 'x'.repeat(101) }, { note: 'long name' }],
    ['anna', 'PUT /devices/UNKNOWN', { display_name: 'A name' }],
    ['anna', 'PUT /devices/{ben-device}', { display_name: 'A name' }, { note: "another user's" }],
    ['anna', 'GET /devices/{anna-device}', undefined, { note: 'named' }],
    ['anonymous', 'POST /login', { ...auth, device_id: 'OTHER' }],
    ['anna', 'DELETE /devices/OTHER', {}, { save: { session: 'session' } }],
    ['anna', 'DELETE /devices/OTHER', { auth: { ...auth, session: '{session}' } }, { note: 'authenticated' }],
    ['anna', 'DELETE /devices/UNKNOWN', { auth }, { note: 'authenticated' }],
    ['anna', 'DELETE /devices/{ben-device}', {}, { note: "another user's" }],
    ['anna', 'DELETE /devices/{ben-device}', { auth }, { note: "another user's, authenticated" }],
    ['anna', 'POST /delete_devices', { devices: ['UNKNOWN'] }],
    ['anna', 'POST /delete_devices', { devices: ['UNKNOWN'], auth }, { note: 'authenticated' }],
    [
      'anna',
      'POST /delete_devices',
      { devices: ['{ben-device}'], auth },
      { note: "another user's, authenticated" },
    ],
    ['anna', 'POST /delete_devices', {}, { note: 'empty' }],
    ['anna', 'POST /delete_devices', { devices: 'X' }, { note: 'wrong type' }],
    ['ben', 'GET /devices', undefined, { note: 'still there' }],
    ['anna', 'PATCH /devices'],
  ],
};
