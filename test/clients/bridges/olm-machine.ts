/** The part of @matrix-org/matrix-sdk-crypto-nodejs that matrix-bot-sdk uses, made with @matrix-org/matrix-sdk-crypto-wasm. */
import {
  DecryptionSettings,
  type DeviceId,
  type DeviceLists,
  type EncryptionSettings,
  type RequestType,
  type RoomId,
  type ToDeviceRequest,
  TrustRequirement,
  type UserId,
  OlmMachine as WasmMachine,
} from '@matrix-org/matrix-sdk-crypto-wasm';

export {
  Attachment,
  DeviceId,
  DeviceLists,
  EncryptedAttachment,
  EncryptionSettings,
  RoomId,
  UserId,
} from '@matrix-org/matrix-sdk-crypto-wasm';

/** Copies user ids: WebAssembly takes over the objects that it is given, and matrix-bot-sdk uses them again. */
const copied = (users: readonly UserId[]) => users.map((user) => user.clone());

/** Returns a to-device request in the form that matrix-sdk-crypto-nodejs gives it. */
const native = ({ id, type, txn_id, event_type, body }: ToDeviceRequest) => ({
  id,
  type,
  txnId: txn_id,
  eventType: event_type,
  body: JSON.stringify({ ...JSON.parse(body), txn_id, event_type }),
});

/** Encrypts and decrypts for one device, whose keys are in memory. */
export class OlmMachine {
  readonly #machine: WasmMachine;

  private constructor(machine: WasmMachine) {
    this.#machine = machine;
  }

  static async initialize(userId: UserId, deviceId: DeviceId): Promise<OlmMachine> {
    return new OlmMachine(await WasmMachine.initialize(userId, deviceId));
  }

  get identityKeys() {
    return this.#machine.identityKeys;
  }

  async outgoingRequests() {
    const requests = await this.#machine.outgoingRequests();
    return requests.map((request) =>
      'txn_id' in request && 'event_type' in request ? native(request) : request,
    );
  }

  markRequestAsSent(id: string, type: RequestType, response: string) {
    return this.#machine.markRequestAsSent(id, type, response);
  }

  updateTrackedUsers(users: readonly UserId[]) {
    return this.#machine.updateTrackedUsers(copied(users));
  }

  getMissingSessions(users: readonly UserId[]) {
    return this.#machine.getMissingSessions(copied(users));
  }

  async shareRoomKey(roomId: RoomId, users: readonly UserId[], settings: EncryptionSettings) {
    const requests = await this.#machine.shareRoomKey(roomId, copied(users), settings);
    return requests.map(native);
  }

  encryptRoomEvent(roomId: RoomId, type: string, content: string) {
    return this.#machine.encryptRoomEvent(roomId, type, content);
  }

  decryptRoomEvent(event: string, roomId: RoomId) {
    return this.#machine.decryptRoomEvent(event, roomId, new DecryptionSettings(TrustRequirement.Untrusted));
  }

  /** @returns the messages as JSON, decrypted where they were encrypted */
  async receiveSyncChanges(
    messages: string,
    deviceLists: DeviceLists,
    keyCounts: Readonly<Record<string, number>>,
    fallbackKeyTypes: readonly string[],
  ): Promise<string> {
    const counts = new Map(Object.entries(keyCounts));
    const types = new Set(fallbackKeyTypes);
    const received = await this.#machine.receiveSyncChanges(messages, deviceLists, counts, types);
    return `[${received.map(({ rawEvent }) => rawEvent).join()}]`;
  }
}
