// Which conversations this page gets every event of: the open one, and those left while they were being answered.
// Of the others comes an overview, at most once a second.
const MOST = 32;

export class Following {
  #socket;
  #isBusy;
  #followed = [];

  constructor(socket, isBusy) {
    this.#socket = socket;
    this.#isBusy = isBusy;
  }

  has(conversation) {
    return this.#followed.includes(conversation);
  }

  // Without a connection nothing is missed: the next hello follows again.
  async add(conversation) {
    const left = this.#followed.filter((one) => one !== conversation && this.#isBusy(one));
    this.#followed = [conversation, ...left].slice(0, MOST);
    await this.#socket.request("chat.follow", { conversations: this.#followed }).catch(() => {});
  }
}
