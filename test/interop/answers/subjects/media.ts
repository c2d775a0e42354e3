import { testImage } from '../../../support/inputs/images.ts';
import type { Subject } from '../compared-request.ts';

const image = await testImage(64, 48);
const text = Buffer.from('a text');
const headers = [
  'content-type',
  'content-disposition',
  'content-security-policy',
  'cross-origin-resource-policy',
  'cache-control',
  'x-robots-tag',
  'content-length',
];
const imageHeaders = headers.filter((name) => name !== 'content-length');
const v1 = '/_matrix/client/v1/media';
const v3 = '/_matrix/media/v3';

export const media: Subject = {
  subject: 'media',
  requests: [
    ['anna', `GET ${v1}/config`],
    ['anna', `GET ${v3}/config`],
    ['anonymous', `GET ${v1}/config`],
    [
      'anna',
      `POST ${v3}/upload?filename=a.png`,
      undefined,
      { bytes: image, type: 'image/png', save: { image: 'content_uri' } },
    ],
    [
      'anna',
      `POST ${v3}/upload?filename=a.txt`,
      undefined,
      { bytes: text, type: 'text/plain', save: { text: 'content_uri' } },
    ],
    ['anna', `POST ${v3}/upload`, undefined, { bytes: Buffer.from('<html></html>'), type: 'text/html' }],
    ['anonymous', `POST ${v3}/upload`, undefined, { bytes: text, type: 'text/plain' }],
    ['anna', 'POST /_matrix/media/v1/create', {}, { save: { later: 'content_uri' } }],
    ['anna', `GET ${v1}/download/{server}/unknown`],
    ['anna', `GET ${v1}/download/{image-id}`, undefined, { headers }],
    ['anna', `GET ${v1}/download/{text-id}`, undefined, { headers }],
    ['anna', `GET ${v1}/download/{text-id}/other.txt`, undefined, { headers }],
    ['anonymous', `GET ${v1}/download/{text-id}`],
    ['anonymous', `GET ${v3}/download/{text-id}`],
    ['anna', `GET ${v1}/download/{later-id}?timeout_ms=0`],
    ['anna', `GET ${v1}/download/{later-id}?timeout_ms=x`],
    ['anna', `PUT ${v3}/upload/{later-id}?filename=b.txt`, undefined, { bytes: text, type: 'text/plain' }],
    ['anna', `PUT ${v3}/upload/{later-id}`, undefined, { bytes: text, type: 'text/plain', note: 'again' }],
    ['ben', `PUT ${v3}/upload/{later-id}`, undefined, { bytes: text, type: 'text/plain' }],
    ['anna', `PUT ${v3}/upload/{server}/unknown`, undefined, { bytes: text, type: 'text/plain' }],
    ['anna', `GET ${v1}/download/{later-id}`, undefined, { headers }],
    [
      'anna',
      `GET ${v1}/thumbnail/{image-id}?width=32&height=32&method=crop`,
      undefined,
      { headers: imageHeaders },
    ],
    ['anna', `GET ${v1}/thumbnail/{image-id}?width=32&height=32`, undefined, { headers: imageHeaders }],
    ['anna', `GET ${v1}/thumbnail/{image-id}?width=32&height=32&method=unknown`],
    ['anna', `GET ${v1}/thumbnail/{image-id}`],
    ['anna', `GET ${v1}/thumbnail/{image-id}?width=x&height=32`],
    ['anna', `GET ${v1}/thumbnail/{image-id}?width=0&height=0`],
    ['anna', `GET ${v1}/thumbnail/{text-id}?width=32&height=32`],
    ['anna', `GET ${v1}/thumbnail/{server}/unknown?width=32&height=32`],
    ['anna', `GET ${v1}/preview_url`],
    ['anna', `GET ${v1}/preview_url?url=malformed`],
    ['anna', `DELETE ${v1}/download/{text-id}`],
    ['server', 'GET /_matrix/federation/v1/media/download/unknown'],
    ['server', 'GET /_matrix/federation/v1/media/thumbnail/unknown?width=32&height=32'],
    ['anonymous', 'GET /_matrix/federation/v1/media/download/unknown'],
  ],
};
