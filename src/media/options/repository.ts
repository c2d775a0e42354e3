import {
  boolean,
  duration,
  integer,
  list,
  nullable,
  object,
  oneOf,
  openObject,
  option,
  size,
  string,
} from '../../kernel/config/index.ts';

const provider = object({
  module: option(string({ minLength: 1 }), {
    description: 'The kind of storage: `file_system`, `s3`, or a module of your own: a file or a package.',
    required: true,
  }),
  store_local: option(boolean(), { description: 'Stores uploads of local users.', default: false }),
  store_remote: option(boolean(), {
    description: 'Stores media fetched from other servers.',
    default: false,
  }),
  store_synchronous: option(boolean(), {
    description: 'Finishes an upload only when it has been stored here too.',
    default: false,
  }),
  config: option(
    openObject({
      directory: option(nullable(string({ minLength: 1 })), {
        description: 'For `file_system`: the directory to store in.',
        default: null,
      }),
    }),
    {
      description:
        'The configuration of the storage. The storage also receives options that are not listed here. The operating guide describes the options of `s3`.',
    },
  ),
});

const uploadLimit = object({
  time_period: option(duration(), {
    description: 'The period over which uploads are added up.',
    required: true,
  }),
  max_size: option(size(), {
    description: 'The maximum size of all uploads of one user in that period.',
    required: true,
    unit: 'bytes',
  }),
});

const thumbnail = object({
  width: option(integer({ minimum: 1 }), { description: 'The width.', required: true, unit: 'pixels' }),
  height: option(integer({ minimum: 1 }), { description: 'The height.', required: true, unit: 'pixels' }),
  method: option(oneOf('crop', 'scale'), {
    description: '`crop` fills the size and cuts off the rest; `scale` fits the whole image into it.',
    required: true,
  }),
});

/** Uploads, downloads, thumbnails and their storage. */
export const repositoryOptions = {
  enable_authenticated_media: option(boolean(), {
    description:
      'Marks new uploads as authenticated: they are served to logged-in users and to servers that sign their requests, and are not found on the old endpoints `/_proto/media/…/download` and `…/thumbnail`. Media that was stored while this was off stays on the old endpoints; all media is at `/_proto/client/v1/media`. Turning this off shows authenticated media on the old endpoints again.',
    default: true,
    changed: ['1.120: on by default.'],
  }),
  enable_media_repo: option(boolean(), {
    description: 'Stores and serves media. When off, this server has no media.',
    default: true,
  }),
  media_store_path: option(string({ minLength: 1 }), {
    description: 'The directory in which media is stored.',
    default: 'media_store',
  }),
  max_pending_media_uploads: option(integer({ minimum: 0 }), {
    description:
      'The maximum number of media addresses that a user has created without uploading to them yet.',
    default: 5,
    unit: 'addresses',
  }),
  unused_expiration_time: option(duration(), {
    description: 'How long a created media address waits for its upload.',
    default: '24h',
  }),
  media_storage_providers: option(list(provider), {
    description: 'Additional storage for media.',
    default: [],
  }),
  max_upload_size: option(size(), {
    description: 'The maximum size of one upload.',
    default: '50M',
    unit: 'bytes',
  }),
  media_upload_limits: option(list(uploadLimit), {
    description:
      'Limits of all uploads of one user in a period, besides `max_upload_size`. Modules may override them.',
    default: [],
  }),
  max_image_pixels: option(size(), {
    description:
      'The maximum number of pixels of an image; larger images get no thumbnails. If one frame of an animation is within the limit and the sum of its frames is not, its thumbnails are not animated.',
    default: '32M',
    unit: 'pixels',
  }),
  remote_media_download_burst_count: option(size(), {
    description: 'How much remote media one client address may fetch at once.',
    default: '500MiB',
    unit: 'bytes',
  }),
  remote_media_download_per_second: option(size(), {
    description: 'How much remote media one client address may fetch per second in the long run.',
    default: '87KiB',
    unit: 'bytes per second',
  }),
  prevent_media_downloads_from: option(list(string({ minLength: 1 })), {
    description:
      'Servers whose media is not served to users, not even stored copies. The admin API still serves it.',
    default: [],
  }),
  dynamic_thumbnails: option(boolean(), {
    description:
      'Makes a thumbnail of exactly the requested size. When off, the smallest of `thumbnail_sizes` that is large enough is served; when none is large enough, the width and height of the largest one are doubled until it is large enough.',
    default: false,
  }),
  thumbnail_sizes: option(list(thumbnail), {
    description: 'The thumbnails that are made of every uploaded image.',
    default: [
      { width: 32, height: 32, method: 'crop' },
      { width: 96, height: 96, method: 'crop' },
      { width: 320, height: 240, method: 'scale' },
      { width: 640, height: 480, method: 'scale' },
      { width: 800, height: 600, method: 'scale' },
    ],
  }),
  media_retention: option(
    object({
      local_media_lifetime: option(nullable(duration()), {
        description:
          'Uploads of local users that were not requested for this long are deleted, thumbnails included. Null keeps them.',
        default: null,
      }),
      remote_media_lifetime: option(nullable(duration()), {
        description:
          'Copies of media of other servers that were not requested for this long are deleted. Null keeps them.',
        default: null,
      }),
    }),
    { description: 'How long media is stored. Quarantined and protected media is never deleted.' },
  ),
};
