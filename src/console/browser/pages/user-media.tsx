import { useEffect, useState } from 'preact/hooks';
import {
  deleteFile,
  download,
  listFiles,
  quarantineAllOf,
  setQuarantined,
  type UploadedFile,
} from '../api/media.ts';
import { Action } from '../components/dialog.tsx';
import { formatBytes, formatCount } from '../components/format.ts';
import { Badge, Page, WhenLoaded } from '../components/layout.tsx';
import { type Column, List } from '../components/table.tsx';
import { Ago } from '../components/times.tsx';
import { useLoaded } from '../shell/loading.ts';
import { addressOf, type PageAddress, setQuery } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';

/** Lists the files that a user has uploaded. */
export function UserMediaPage({
  userId,
  address,
}: {
  readonly userId: string;
  readonly address: PageAddress;
}) {
  const { api } = useSession();
  const { reloads = '' } = address.query;
  const reload = () => setQuery(address, { reloads: String(Number(reloads) + 1) }, false);
  const quarantineAll = async () => {
    const number = await quarantineAllOf(api, userId);
    return number === 1 ? 'One file is in quarantine.' : `${formatCount(number)} files are in quarantine.`;
  };
  return (
    <Page
      title={`Media of ${userId}`}
      up={{ href: addressOf('media'), text: 'Media' }}
      actions={
        <>
          <a href={addressOf('user', userId)}>The user</a>
          <Action
            label="Quarantine all"
            title={`Quarantine all files of ${userId}?`}
            kind="danger"
            action={quarantineAll}
            onDone={reload}
          >
            <p>Users cannot download them any more. Protected files are left out.</p>
          </Action>
        </>
      }
    >
      <List
        caption="Files"
        address={address}
        columns={columns(reload)}
        keyOf={({ media_id }) => media_id}
        inputs={[userId, reloads]}
        load={(page, signal) => listFiles(api, userId, page, signal)}
        empty="This user has uploaded no file."
      />
    </Page>
  );
}

const columns = (reload: () => void): readonly Column<UploadedFile>[] => [
  {
    title: 'File',
    orderBy: 'upload_name',
    cell: (file) => (
      <span class="name">
        <strong>{file.upload_name ?? file.media_id}</strong>
        <small>{file.media_type ?? 'unknown type'}</small>
      </span>
    ),
  },
  { title: 'State', cell: (file) => <FileState file={file} /> },
  {
    title: 'Size',
    isNumber: true,
    orderBy: 'media_length',
    cell: (file) => formatBytes(file.media_length ?? 0),
  },
  { title: 'Uploaded', orderBy: 'created_ts', cell: (file) => <Ago at={file.created_ts} /> },
  { title: 'Last used', orderBy: 'last_access_ts', cell: (file) => <Ago at={file.last_access_ts} /> },
  { title: '', cell: (file) => <FileActions file={file} onDone={reload} /> },
];

function FileState({ file }: { readonly file: UploadedFile }) {
  if (file.quarantined_by !== null) return <Badge kind="bad">In quarantine</Badge>;
  return file.safe_from_quarantine ? <Badge kind="good">Protected</Badge> : <span class="badges" />;
}

function FileActions({ file, onDone }: { readonly file: UploadedFile; readonly onDone: () => void }) {
  const { api, serverName } = useSession();
  const name = file.upload_name ?? file.media_id;
  const isQuarantined = file.quarantined_by !== null;
  const quarantine = async () => {
    await setQuarantined(api, serverName, file.media_id, !isQuarantined);
    return isQuarantined ? 'The file can be downloaded again.' : 'The file is in quarantine.';
  };
  const remove = async () => {
    await deleteFile(api, serverName, file.media_id);
    return 'The file has been deleted.';
  };
  return (
    <div class="actions">
      {!isQuarantined && isPicture(file) && (
        <Action label="Show" about={`Show ${name}`} title={name} confirm="Close" action={async () => ''}>
          <Picture mediaId={file.media_id} name={name} />
        </Action>
      )}
      <Action
        label={isQuarantined ? 'Release' : 'Quarantine'}
        about={`${isQuarantined ? 'Release' : 'Quarantine'} ${name}`}
        title={isQuarantined ? `Release ${name} from quarantine?` : `Quarantine ${name}?`}
        kind={isQuarantined ? 'plain' : 'danger'}
        action={quarantine}
        onDone={onDone}
      >
        <p>{isQuarantined ? 'Users can download it again.' : 'Users cannot download it any more.'}</p>
      </Action>
      <Action
        label="Delete"
        about={`Delete ${name}`}
        title={`Delete ${name}?`}
        kind="danger"
        action={remove}
        onDone={onDone}
      >
        <p>The file and its thumbnails are removed from this server. This cannot be undone.</p>
      </Action>
    </div>
  );
}

/** Whether browsers show a file of this type as a picture. Types that may contain scripts are excluded. */
const isPicture = ({ media_type: type }: UploadedFile) => /^image\/(png|jpeg|gif|webp)$/.test(type ?? '');

function Picture({ mediaId, name }: { readonly mediaId: string; readonly name: string }) {
  const { api, serverName } = useSession();
  const blob = useLoaded((signal) => download(api, serverName, mediaId, signal), [mediaId]);
  const [source, setSource] = useState<string>();
  useEffect(() => {
    if (blob.value === undefined) return undefined;
    const made = URL.createObjectURL(blob.value);
    setSource(made);
    return () => URL.revokeObjectURL(made);
  }, [blob.value]);
  return (
    <WhenLoaded loaded={blob}>{() => source && <img class="picture" src={source} alt={name} />}</WhenLoaded>
  );
}
